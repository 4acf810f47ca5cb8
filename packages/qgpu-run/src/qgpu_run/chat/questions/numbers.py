"""Random numbers and lists for questions, and how people write them."""

from __future__ import annotations

from random import Random

Vector = list[int]
Matrix = list[list[int]]

LIMIT = 2**31
# fmt: off
_WORDS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight",
    "nine", "ten", "eleven", "twelve",
]
# fmt: on


def held_out(number: int) -> bool:
    """Whether a number is kept for evaluation: one in eight of those with three digits or more.

    The hash is Knuth's multiplicative one, so which numbers these are has no pattern in digits.
    """
    number = abs(number)
    return number > 99 and (number * 2654435761 & 0xFFFFFFFF) >> 29 == 0


class Numbers:
    """A source of numbers.

    Args:
        random: where they come from.
        unseen: whether numbers of three digits or more are those that are kept for evaluation;
            otherwise they are never such.
    """

    def __init__(self, random: Random, *, unseen: bool) -> None:
        self.random = random
        self.unseen = unseen

    def number(self, digits: int = 4, *, negative: float = 0.08, least: int = 0) -> int:
        """A number of 1 to `digits` digits, each as likely."""
        while True:
            value = self._digits(self.random.randint(1, digits))
            if value < least or (value > 99 and held_out(value) != self.unseen):
                continue
            return -value if value and self.random.random() < negative else value

    def _digits(self, length: int) -> int:
        """A number of so many digits; some are round or have one digit many times."""
        kind = self.random.random()
        if kind < 0.08:
            return int(str(self.random.randint(1, 9)) + "0" * (length - 1))
        if kind < 0.16:
            values = self.random.choices(range(10), k=2)
            return int("".join(str(self.random.choice(values)) for _ in range(length)))
        if kind < 0.2:
            return int(str(self.random.randint(1, 9)) * length)
        return self.random.randint(0 if length == 1 else 10 ** (length - 1), 10**length - 1)

    def vector(self, length: int, digits: int = 3, *, negative: float = 0.08) -> Vector:
        """A list of numbers of about one size, some more than once."""
        digits = self.random.randint(1, digits)
        if self.random.random() < 0.7:
            negative = 0
        values = [self.number(digits, negative=negative) for _ in range(length)]
        if self.random.random() < 0.2:
            # Few different numbers, several times each.
            return self.random.choices(values[: max(1, length // 2)], k=length)
        return values

    def matrix(self, rows: int, columns: int, digits: int = 2) -> Matrix:
        """A matrix of numbers of about one size."""
        return [self.vector(columns, digits, negative=0.05) for _ in range(rows)]

    def integer_text(self, value: int) -> str:
        """A number as somebody may write it: mostly in digits."""
        if 0 <= value <= 12 and self.random.random() < 0.04:
            return _WORDS[value]
        if abs(value) > 999 and self.random.random() < 0.1:
            return f"{value:,}"
        return str(value)

    def list_text(self, values: Vector) -> str:
        """A list as somebody may write it: in prose, with or without brackets."""
        style = self.random.random()
        items = [str(value) for value in values]
        if style < 0.35:
            return ", ".join(items[:-1]) + f" and {items[-1]}"
        if style < 0.45:
            return ", ".join(items[:-1]) + f", and {items[-1]}"
        if style < 0.6:
            return ", ".join(items)
        if style < 0.68:
            return " ".join(items)
        if style < 0.72:
            return ",".join(items)
        return self.vector_text(values)

    def vector_text(self, values: Vector) -> str:
        """A list in brackets or parentheses."""
        style = self.random.random()
        items = [str(value) for value in values]
        if style < 0.7:
            return f"[{', '.join(items)}]"
        if style < 0.8:
            return f"[{','.join(items)}]"
        if style < 0.93:
            return f"({', '.join(items)})"
        return f"[{' '.join(items)}]"

    def matrix_text(self, rows: Matrix) -> str:
        """A matrix as nested lists, or with rows between semicolons."""
        style = self.random.random()
        if style < 0.75:
            return matrix_value(rows)
        if style < 0.88:
            return "[" + ",".join(f"[{','.join(map(str, row))}]" for row in rows) + "]"
        return "[" + "; ".join(" ".join(map(str, row)) for row in rows) + "]"


def vector_value(values: Vector) -> str:
    """A vector as an expression or a result has it."""
    return f"[{', '.join(map(str, values))}]"


def matrix_value(rows: Matrix) -> str:
    """A matrix as an expression or a result has it."""
    return f"[{', '.join(map(vector_value, rows))}]"
