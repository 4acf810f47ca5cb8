"""Kinds of questions: what is asked, the expression that answers it, and the known result.

Results are worked out here with Python's own integers, independently of the GPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from qgpu_run.chat.questions.formulas import random_formula
from qgpu_run.chat.questions.numbers import (
    LIMIT,
    Numbers,
    matrix_value,
    vector_value,
)

# fmt: off
NAMES = [
    "Anna", "Ben", "Carla", "David", "Emma", "Felix", "Grace", "Henry", "Ines",
    "Jack", "Kim", "Leo", "Mia", "Noah", "Olga", "Paul", "Rosa", "Sam",
    "Tom", "Vera",
]
# fmt: on
# fmt: off
THINGS = [
    "apples", "books", "coins", "marbles", "cards", "stamps", "eggs", "pens", "tickets",
    "stones", "shells", "cookies", "bottles", "balls", "pearls", "chairs", "lamps", "nuts",
]
# fmt: on


@dataclass(frozen=True)
class Draw:
    """One question before it is put into words.

    Attributes:
        slots: the texts that phrasings name.
        expression: what is to be evaluated.
        result: the value as the calculator writes it, or an error's text.
        failed: whether the result is an error.
    """

    slots: dict[str, str]
    expression: str
    result: str
    failed: bool = False


@dataclass(frozen=True)
class Family:
    """A kind of question.

    Attributes:
        category: what evaluation reports it under.
        draw: makes one.
        weight: how often it is drawn beside others.
    """

    category: str
    draw: Callable[[Numbers], Draw]
    weight: float = field(default=1.0)


def _scalar(slots: dict[str, str], expression: str, value: int, failing: str = "") -> Draw:
    if not -LIMIT <= value < LIMIT:
        return overflow(slots, expression, failing or expression)
    return Draw(slots, expression, str(value))


def overflow(slots: dict[str, str], expression: str, failing: str) -> Draw:
    """A question whose answer does not fit the GPU's words."""
    return Draw(slots, expression, f"overflow: {failing} does not fit 32 bits", failed=True)


def quotient_text(a: int, b: int) -> str:
    """a / b as the calculator writes it: truncated, with what remains."""
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    rest = a - quotient * b
    return f"{quotient} (remainder {rest})" if rest else str(quotient)


def _two(n: Numbers, digits_a: int = 5, digits_b: int = 5) -> tuple[int, int, dict[str, str]]:
    a, b = n.number(digits_a), n.number(digits_b, negative=0.05)
    return a, b, {"a": n.integer_text(a), "b": n.integer_text(b)}


def _add(n: Numbers) -> Draw:
    a, b, slots = _two(n, 7, 7)
    return _scalar(slots, f"{a} + {b}", a + b)


def _subtract(n: Numbers) -> Draw:
    a, b, slots = _two(n, 7, 7)
    return _scalar(slots, f"{a} - {b}", a - b)


def _multiply(n: Numbers) -> Draw:
    large = n.random.random() < 0.1
    a, b, slots = _two(n, *((7, 7) if large else (5, 4)))
    return _scalar(slots, f"{a} * {b}", a * b)


def _divide(n: Numbers) -> Draw:
    a, b = n.number(7), n.number(3)
    if n.random.random() < 0.93:
        b = b or 1
    slots = {"a": n.integer_text(a), "b": n.integer_text(b)}
    expression = f"{a} / {b}"
    if b == 0:
        return Draw(slots, expression, f"division by zero: {expression}", failed=True)
    return Draw(slots, expression, quotient_text(a, b))


def _remainder(n: Numbers) -> Draw:
    a, b = n.number(7, negative=0), n.number(3, negative=0, least=1)
    return _scalar({"a": n.integer_text(a), "b": n.integer_text(b)}, f"{a} % {b}", a % b)


def _power(n: Numbers) -> Draw:
    a, b = n.number(2, negative=0.05), n.random.randint(0, 10)
    if n.random.random() < 0.85:
        while abs(a**b) >= LIMIT:
            b -= 1
    base = f"({a})" if a < 0 else str(a)
    return _scalar({"a": str(a), "b": str(b)}, f"{base} ** {b}", a**b)


def _fixed_power(exponent: int, digits: int) -> Callable[[Numbers], Draw]:
    def draw(n: Numbers) -> Draw:
        a = n.number(digits, negative=0.05)
        base = f"({a})" if a < 0 else str(a)
        return _scalar({"a": n.integer_text(a)}, f"{base} ** {exponent}", a**exponent)

    return draw


def _root(n: Numbers) -> Draw:
    a = n.number(7, negative=0)
    if n.random.random() < 0.4:
        a = n.number(3, negative=0) ** 2
    return _scalar({"a": n.integer_text(a)}, f"sqrt({a})", math.isqrt(a))


def _absolute(n: Numbers) -> Draw:
    a = n.number(6, negative=0.7)
    return _scalar({"a": str(a)}, f"abs({a})", abs(a))


def _pair_function(name: str, function: Callable[[int, int], int]) -> Callable[[Numbers], Draw]:
    def draw(n: Numbers) -> Draw:
        a, b = n.number(4, negative=0, least=1), n.number(4, negative=0, least=1)
        if n.random.random() < 0.6:
            common = n.random.randint(2, 30)
            a, b = a * common, b * common
        return _scalar({"a": str(a), "b": str(b)}, f"{name}({a}, {b})", function(a, b))

    return draw


def _factorial(n: Numbers) -> Draw:
    a = n.random.randint(0, 12 if n.random.random() < 0.9 else 20)
    return _scalar({"a": str(a)}, f"factorial({a})", math.factorial(a))


def _fibonacci(n: Numbers) -> Draw:
    a = n.random.randint(0, 46)
    x, y = 0, 1
    for _ in range(a):
        x, y = y, x + y
    return _scalar({"a": str(a)}, f"fibonacci({a})", x)


def _prime(n: Numbers) -> Draw:
    a = n.number(5, negative=0)
    if n.random.random() < 0.5:
        while not is_prime(a):
            a += 1
    slots = {"a": n.integer_text(a)}
    return Draw(slots, f"is_prime({a})", "true" if is_prime(a) else "false")


def is_prime(a: int) -> bool:
    """By trial division."""
    return a > 1 and all(a % d for d in range(2, math.isqrt(a) + 1))


def _list(
    n: Numbers, low: int = 2, high: int = 9, digits: int = 4
) -> tuple[list[int], dict[str, str]]:
    xs = n.vector(n.random.randint(low, high), digits)
    return xs, {"xs": n.list_text(xs), "xl": n.vector_text(xs), "v": n.vector_text(xs)}


def _of_list(
    name: str, function: Callable[[list[int]], int], digits: int = 4
) -> Callable[[Numbers], Draw]:
    def draw(n: Numbers) -> Draw:
        xs, slots = _list(n, digits=digits)
        return _scalar(slots, f"{name}({vector_value(xs)})", function(xs))

    return draw


def _mean(n: Numbers) -> Draw:
    xs, slots = _list(n)
    return Draw(slots, f"mean({vector_value(xs)})", quotient_text(sum(xs), len(xs)))


def _list_to_list(
    name: str, function: Callable[[list[int]], list[int]]
) -> Callable[[Numbers], Draw]:
    def draw(n: Numbers) -> Draw:
        xs, slots = _list(n, 3, 9, 3)
        return Draw(slots, f"{name}({vector_value(xs)})", vector_value(function(xs)))

    return draw


def _running(xs: list[int]) -> list[int]:
    return [sum(xs[: i + 1]) for i in range(len(xs))]


def _count_above(n: Numbers) -> Draw:
    xs, slots = _list(n, 3, 9, 3)
    k = (
        n.random.choice(xs) + n.random.choice([-1, 0, 1])
        if n.random.random() < 0.5
        else n.number(2)
    )
    slots["k"] = str(k)
    return _scalar(slots, f"count({vector_value(xs)} > {k})", sum(x > k for x in xs))


def _spread(n: Numbers) -> Draw:
    xs, slots = _list(n, 3, 8, 3)
    v = vector_value(xs)
    return _scalar(slots, f"max({v}) - min({v})", max(xs) - min(xs))


def _two_vectors(n: Numbers, digits: int = 3) -> tuple[list[int], list[int], dict[str, str]]:
    length = n.random.randint(2, 6)
    v, w = n.vector(length, digits), n.vector(length, digits)
    return v, w, {"v": n.vector_text(v), "w": n.vector_text(w)}


def _elementwise(sign: str, function: Callable[[int, int], int]) -> Callable[[Numbers], Draw]:
    def draw(n: Numbers) -> Draw:
        v, w, slots = _two_vectors(n)
        result = [function(x, y) for x, y in zip(v, w, strict=True)]
        return Draw(slots, f"{vector_value(v)} {sign} {vector_value(w)}", vector_value(result))

    return draw


def _scale(n: Numbers) -> Draw:
    v, k = n.vector(n.random.randint(2, 7)), n.number(2, negative=0.1)
    slots = {"v": n.vector_text(v), "k": str(k)}
    return Draw(slots, f"{k} * {vector_value(v)}", vector_value([k * x for x in v]))


def _dot(n: Numbers) -> Draw:
    v, w, slots = _two_vectors(n)
    value = sum(x * y for x, y in zip(v, w, strict=True))
    return _scalar(slots, f"{vector_value(v)} @ {vector_value(w)}", value)


def _matrix_vector(n: Numbers) -> Draw:
    rows, columns = n.random.randint(2, 3), n.random.randint(2, 3)
    m, v = n.matrix(rows, columns), n.vector(columns, 2)
    slots = {"m": n.matrix_text(m), "v": n.vector_text(v)}
    result = [sum(x * y for x, y in zip(row, v, strict=True)) for row in m]
    return Draw(slots, f"{matrix_value(m)} @ {vector_value(v)}", vector_value(result))


def _matrix_multiply(n: Numbers) -> Draw:
    rows, inner, columns = (n.random.randint(2, 3) for _ in range(3))
    if n.random.random() < 0.5:
        rows = inner = columns = 2
    m, k = n.matrix(rows, inner), n.matrix(inner, columns)
    slots = {"m": n.matrix_text(m), "n": n.matrix_text(k)}
    result = [[sum(row[i] * k[i][j] for i in range(inner)) for j in range(columns)] for row in m]
    return Draw(slots, f"{matrix_value(m)} @ {matrix_value(k)}", matrix_value(result))


def _matrix_add(n: Numbers) -> Draw:
    rows, columns = n.random.randint(2, 3), n.random.randint(2, 3)
    m, k = n.matrix(rows, columns), n.matrix(rows, columns)
    slots = {"m": n.matrix_text(m), "n": n.matrix_text(k)}
    result = [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(m, k, strict=True)]
    return Draw(slots, f"{matrix_value(m)} + {matrix_value(k)}", matrix_value(result))


def _one_matrix(n: Numbers, *, square: bool = False) -> tuple[list[list[int]], dict[str, str]]:
    rows = n.random.randint(2, 3)
    m = n.matrix(rows, rows if square else n.random.randint(2, 3))
    return m, {"m": n.matrix_text(m)}


def _transpose(n: Numbers) -> Draw:
    m, slots = _one_matrix(n)
    turned = [list(column) for column in zip(*m, strict=True)]
    return Draw(slots, f"transpose({matrix_value(m)})", matrix_value(turned))


def _trace(n: Numbers) -> Draw:
    m, slots = _one_matrix(n, square=True)
    return _scalar(slots, f"trace({matrix_value(m)})", sum(m[i][i] for i in range(len(m))))


def _matrix_sum(n: Numbers) -> Draw:
    m, slots = _one_matrix(n)
    return _scalar(slots, f"sum({matrix_value(m)})", sum(map(sum, m)))


def _compare(sign: str, function: Callable[[int, int], bool]) -> Callable[[Numbers], Draw]:
    def draw(n: Numbers) -> Draw:
        a, b = n.number(6), n.number(6)
        if n.random.random() < 0.2:
            b = a
        x = str(a)
        if sign == "==":
            c, d = n.number(3, negative=0), n.number(3, negative=0)
            x, a = f"{c} * {d}", c * d
            b = a if n.random.random() < 0.5 else a + n.random.randint(-20, 20)
        slots = {"a": str(a), "b": n.integer_text(b), "x": x}
        left = x if sign == "==" else str(a)
        return Draw(slots, f"{left} {sign} {b}", "true" if function(a, b) else "false")

    return draw


def _of_two(name: str, function: Callable[[int, int], int]) -> Callable[[Numbers], Draw]:
    def draw(n: Numbers) -> Draw:
        a, b, slots = _two(n)
        return _scalar(slots, f"{name}({a}, {b})", function(a, b))

    return draw


def _formula(n: Numbers) -> Draw:
    formula = random_formula(n)
    return Draw({"e": formula.asked}, formula.expression, formula.result, formula.failed)


def _three(form: str, function: Callable[[int, int, int], int]) -> Callable[[Numbers], Draw]:
    def draw(n: Numbers) -> Draw:
        a, b, c = (n.number(3, negative=0) for _ in range(3))
        slots = {"a": n.integer_text(a), "b": n.integer_text(b), "c": n.integer_text(c)}
        return _scalar(slots, form.format(a=a, b=b, c=c), function(a, b, c))

    return draw


def _squares_sum(n: Numbers) -> Draw:
    a, b = n.number(3, negative=0), n.number(3, negative=0)
    return _scalar({"a": str(a), "b": str(b)}, f"{a} ** 2 + {b} ** 2", a * a + b * b)


def _double_sum(n: Numbers) -> Draw:
    xs, slots = _list(n, 2, 6, 3)
    return _scalar(slots, f"2 * sum({vector_value(xs)})", 2 * sum(xs))


def _sum_of_product(n: Numbers) -> Draw:
    xs, slots = _list(n, 2, 6, 3)
    k = n.number(2, negative=0)
    slots["k"] = n.integer_text(k)
    return _scalar(slots, f"{k} * sum({vector_value(xs)})", k * sum(xs))


def _story(sign: str) -> Callable[[Numbers], Draw]:
    def draw(n: Numbers) -> Draw:
        a, b = n.number(4, negative=0, least=2), n.number(3, negative=0, least=2)
        if sign == "-" and b > a:
            a, b = b, a
        if sign == "/":
            b = b % 30 + 2
        name, other = n.random.sample(NAMES, 2)
        slots = {"a": n.integer_text(a), "b": n.integer_text(b), "name": name, "name2": other}
        slots["things"] = n.random.choice(THINGS)
        expression = f"{a} {sign} {b}"
        if sign == "/":
            return Draw(slots, expression, quotient_text(a, b))
        value = {"+": a + b, "-": a - b, "*": a * b}[sign]
        return _scalar(slots, expression, value)

    return draw


FAMILIES: dict[str, Family] = {
    "add": Family("arithmetic", _add, 1.5),
    "subtract": Family("arithmetic", _subtract, 1.3),
    "multiply": Family("arithmetic", _multiply, 1.5),
    "divide": Family("arithmetic", _divide, 1.3),
    "remainder": Family("arithmetic", _remainder),
    "power": Family("powers", _power),
    "square": Family("powers", _fixed_power(2, 4), 0.7),
    "cube": Family("powers", _fixed_power(3, 3), 0.5),
    "root": Family("powers", _root, 0.8),
    "absolute": Family("number", _absolute, 0.5),
    "gcd": Family("number", _pair_function("gcd", math.gcd)),
    "lcm": Family("number", _pair_function("lcm", math.lcm), 0.8),
    "factorial": Family("number", _factorial, 0.5),
    "fibonacci": Family("number", _fibonacci, 0.5),
    "prime": Family("number", _prime, 0.8),
    "sum": Family("lists", _of_list("sum", sum), 1.6),
    "product": Family("lists", _of_list("prod", math.prod, 2)),
    "minimum": Family("lists", _of_list("min", min)),
    "maximum": Family("lists", _of_list("max", max)),
    "mean": Family("lists", _mean),
    "sort": Family("lists", _list_to_list("sort", sorted), 1.3),
    "sort_down": Family("lists", _list_to_list("sort_desc", lambda x: sorted(x, reverse=True))),
    "reverse": Family("lists", _list_to_list("reverse", lambda x: x[::-1]), 0.8),
    "prefix_sums": Family("lists", _list_to_list("cumsum", _running)),
    "count_above": Family("lists", _count_above),
    "spread": Family("lists", _spread, 0.8),
    "vector_add": Family("vectors", _elementwise("+", lambda x, y: x + y), 1.2),
    "vector_subtract": Family("vectors", _elementwise("-", lambda x, y: x - y)),
    "vector_multiply": Family("vectors", _elementwise("*", lambda x, y: x * y), 0.8),
    "scale": Family("vectors", _scale),
    "dot": Family("vectors", _dot, 1.3),
    "norm2": Family("vectors", _of_list("norm2", lambda x: sum(y * y for y in x), 3)),
    "matrix_vector": Family("matrices", _matrix_vector),
    "matrix_multiply": Family("matrices", _matrix_multiply, 1.2),
    "matrix_add": Family("matrices", _matrix_add, 0.8),
    "transpose": Family("matrices", _transpose, 0.8),
    "trace": Family("matrices", _trace, 0.5),
    "matrix_sum": Family("matrices", _matrix_sum, 0.5),
    "greater": Family("comparisons", _compare(">", lambda x, y: x > y)),
    "less": Family("comparisons", _compare("<", lambda x, y: x < y)),
    "equal": Family("comparisons", _compare("==", lambda x, y: x == y)),
    "larger_of": Family("comparisons", _of_two("max", max), 0.6),
    "smaller_of": Family("comparisons", _of_two("min", min), 0.6),
    "formula": Family("formulas", _formula, 2.5),
    "sum_times": Family("formulas", _three("({a} + {b}) * {c}", lambda a, b, c: (a + b) * c), 0.7),
    "product_plus": Family("formulas", _three("{a} * {b} + {c}", lambda a, b, c: a * b + c), 0.7),
    "product_minus": Family("formulas", _three("{a} * {b} - {c}", lambda a, b, c: a * b - c), 0.7),
    "difference_times": Family(
        "formulas", _three("({a} - {b}) * {c}", lambda a, b, c: (a - b) * c), 0.7
    ),
    "squares_sum": Family("formulas", _squares_sum, 0.5),
    "double_sum": Family("formulas", _double_sum, 0.6),
    "sum_of_product": Family("formulas", _sum_of_product, 0.6),
    "story_add": Family("stories", _story("+")),
    "story_subtract": Family("stories", _story("-")),
    "story_multiply": Family("stories", _story("*")),
    "story_divide": Family("stories", _story("/"), 0.8),
}
