"""Random arithmetic written in signs, such as 3 * (4 + 5)."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_run.chat.questions.numbers import LIMIT, Numbers

_ASKED_SIGNS = {"*": ("*", "*", "*", "×", "x", "·"), "-": ("-", "-", "-", "−")}


@dataclass(frozen=True)
class Formula:
    """A formula as it is asked and as it is calculated.

    Attributes:
        asked: as somebody may write it.
        expression: the same, as the calculator reads it.
        result: the value, or an error's text.
        failed: whether the result is an error.
    """

    asked: str
    expression: str
    result: str
    failed: bool


@dataclass(frozen=True)
class _Part:
    asked: str
    text: str
    value: int
    level: int


class _Overflow(Exception):
    pass


def random_formula(numbers: Numbers) -> Formula:
    """A formula of two to four operations."""
    random = numbers.random
    tight = random.random() < 0.15
    while True:
        try:
            part = _build(numbers, random.choice([2, 2, 2, 3, 3, 4]))
        except _Overflow:
            continue
        asked = part.asked.replace(" ", "") if tight else part.asked
        return Formula(asked, part.text, str(part.value), failed=False)


def _build(numbers: Numbers, operations: int) -> _Part:
    random = numbers.random
    if operations == 0:
        value = numbers.number(random.choice([1, 2, 2, 3]), negative=0)
        return _Part(str(value), str(value), value, 3)
    left = random.randint(0, operations - 1)
    if random.random() < 0.6:
        left = operations - 1
    a, b = _build(numbers, left), _build(numbers, operations - 1 - left)
    sign = random.choice("++--***")
    level = 2 if sign == "*" else 1
    value = {"+": a.value + b.value, "-": a.value - b.value, "*": a.value * b.value}[sign]
    if not -LIMIT <= value < LIMIT:
        raise _Overflow
    left_asked, left_text = _in_parentheses(a, a.level < level)
    # What stands behind a minus sign binds to the left.
    right_asked, right_text = _in_parentheses(b, b.level < level or (sign == "-" and b.level == 1))
    asked_sign = random.choice(_ASKED_SIGNS.get(sign, (sign,)))
    return _Part(
        f"{left_asked} {asked_sign} {right_asked}", f"{left_text} {sign} {right_text}", value, level
    )


def _in_parentheses(part: _Part, wanted: bool) -> tuple[str, str]:
    if wanted:
        return f"({part.asked})", f"({part.text})"
    return part.asked, part.text
