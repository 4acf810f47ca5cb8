"""The one table of operations: parser, planner, documentation and tests go by it."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_run.expression.build import (
    Build,
    choose,
    diff,
    dot_sign,
    elementwise,
    extreme,
    item,
    matmul,
    norm2,
    outer,
    range_,
    reducing,
    reverse,
    scanning,
    sorting,
    summing,
    trace,
    transpose,
)

MANY = 10_000


@dataclass(frozen=True)
class Operation:
    """An operator or function.

    Attributes:
        name: of the function; operators have one as well.
        form: how it is written.
        meaning: what it gives.
        example, value: an expression and the text of its value.
        build: makes its calls.
        least, most: how many arguments it takes.
        options: names of arguments that may be given by name.
        words: bare words that it takes.
        aliases: other names.
    """

    name: str
    form: str
    meaning: str
    example: str
    value: str
    build: Build
    least: int = 1
    most: int = 1
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def _pair(name: str, form: str, meaning: str, example: str, value: str, build: Build,
          *aliases: str) -> Operation:  # fmt: skip
    return Operation(name, form, meaning, example, value, build, 2, 2, aliases=aliases)


def _one(name: str, form: str, meaning: str, example: str, value: str, build: Build,
         *aliases: str) -> Operation:  # fmt: skip
    return Operation(name, form, meaning, example, value, build, aliases=aliases)


def _reduction(name: str, meaning: str, example: str, value: str, build: Build,
               *aliases: str) -> Operation:  # fmt: skip
    form = f"{name}(x), {name}(m, axis)"
    return Operation(name, form, meaning, example, value, build, 1, MANY, ("axis",),
                     aliases=aliases)  # fmt: skip


def _compare(name: str, sign: str, meaning: str, value: str, less: int, equal: int, greater: int,
             *aliases: str) -> Operation:  # fmt: skip
    build = elementwise("compare_numbers", less, equal, greater, truth=True, has_error=False)
    return _pair(name, f"x {sign} y", meaning, f"[1, 2, 3] {sign} 2", value, build, *aliases)


def _logic(choice: int) -> Build:
    return elementwise("combine_numbers", choice, truth=True, has_error=False)


def _bits(choice: int) -> Build:
    return elementwise("combine_numbers", choice, has_error=False)


OPERATIONS: tuple[Operation, ...] = (
    _pair("add", "x + y", "sum", "12 + 30", "42", elementwise("checked_arithmetic", 0)),
    _pair("subtract", "x - y", "difference", "[5, 6] - 7", "[-2, -1]",
          elementwise("checked_arithmetic", 1)),
    _pair("multiply", "x * y, x × y", "product, element by element", "[1, 2] * [3, 4]", "[3, 8]",
          elementwise("checked_arithmetic", 2)),
    _pair("divide", "x / y, x ÷ y", "quotient rounded toward zero; tells a remainder", "17 / 5",
          "3 (remainder 2)", elementwise("checked_division", 0, has_rest=True)),
    _pair("remainder", "x % y", "remainder of `/`, as C's: it has the sign of x", "-7 % 3", "-1",
          elementwise("checked_division", 1, has_rest=True), "fmod"),
    _pair("floor_divide", "x // y", "quotient rounded down, as Python's", "-7 // 3", "-3",
          elementwise("checked_division", 2, has_rest=True)),
    _pair("mod", "mod(x, y)", "remainder of `//`, as Python's: it has the sign of y", "mod(-7, 3)",
          "2", elementwise("checked_division", 3, has_rest=True)),
    _pair("power", "x ** y, x ^ y, x², x³", "power; y is not negative", "2 ** 10", "1024",
          elementwise("checked_power"), "pow"),
    _one("negative", "-x", "minus x", "-(2 + 3)", "-5", elementwise("change_number", 0), "neg"),
    _one("abs", "abs(x)", "absolute value", "abs([-3, 4])", "[3, 4]",
         elementwise("change_number", 1), "absolute"),
    _one("sign", "sign(x)", "-1, 0 or 1", "sign([-3, 0, 4])", "[-1, 0, 1]",
         elementwise("change_number", 4)),
    _compare("equal", "==", "equal", "[false, true, false]", 0, 1, 0),
    _compare("not_equal", "!=", "not equal; also ≠", "[true, false, true]", 1, 0, 1),
    _compare("less", "<", "less", "[true, false, false]", 1, 0, 0),
    _compare("less_equal", "<=", "less or equal; also ≤", "[true, true, false]", 1, 1, 0),
    _compare("greater", ">", "greater", "[false, false, true]", 0, 0, 1),
    _compare("greater_equal", ">=", "greater or equal; also ≥", "[false, true, true]", 0, 1, 1),
    _pair("logical_and", "x and y", "both true; numbers but 0 are", "1 < 2 and 2 < 3", "true",
          _logic(2)),
    _pair("logical_or", "x or y", "one of them true", "1 > 2 or 2 > 3", "false", _logic(3)),
    _one("logical_not", "not x", "false where x is true", "not [true, false]", "[false, true]",
         elementwise("change_number", 2, truth=True)),
    _pair("bit_and", "x & y", "and of the bits", "12 & 10", "8", _bits(4), "bitand",
          "bitwise_and"),
    _pair("bit_or", "x | y", "or of the bits", "12 | 10", "14", _bits(5), "bitor", "bitwise_or"),
    _pair("bit_xor", "x xor y", "exclusive or of the bits", "12 xor 10", "6", _bits(6), "xor",
          "bitxor", "bitwise_xor"),
    _pair("left_shift", "x << y", "x times 2 to the power of y, 0 to 31", "3 << 4", "48",
          elementwise("checked_shift", 0)),
    _pair("right_shift", "x >> y", "x / 2 to the power of y rounded down", "-5 >> 1", "-3",
          elementwise("checked_shift", 1)),
    _one("popcount", "popcount(x)", "number of bits that are 1", "popcount(255)", "8",
         elementwise("change_number", 3), "bitwise_count"),
    _pair("matmul", "x @ y", "dot product, or product with a matrix",
          "[[1, 2], [3, 4]] @ [5, 6]", "[17, 39]", matmul, "dot"),
    _pair("dot_sign", "x · y", "as `@` for two arrays, else as `*`", "[1, 2, 3] · [4, 5, 6]",
          "32", dot_sign),
    _pair("outer", "outer(x, y)", "all products of two vectors", "outer([1, 2], [3, 4])",
          "[[3, 4], [6, 8]]", outer),
    _one("transpose", "transpose(m), m.T", "rows and columns exchanged", "[[1, 2], [3, 4]].T",
         "[[1, 3], [2, 4]]", transpose),
    _one("trace", "trace(m)", "sum of the diagonal", "trace([[1, 2], [3, 4]])", "5", trace),
    _one("norm2", "norm2(x)", "sum of squares", "norm2([3, 4])", "25", norm2),
    _reduction("sum", "sum of all, or along an axis", "sum([[1, 2], [3, 4]], 0)", "[4, 6]",
               summing(0)),
    _reduction("prod", "product", "prod([2, 3, 4])", "24", reducing("checked_product"),
               "product"),
    _reduction("mean", "whole part of the mean; tells a remainder", "mean([1, 2, 5])",
               "2 (remainder 2)", summing(1), "average"),
    Operation("min", "min(x), min(x, y)", "smallest; of two element by element",
              "min([3, 1, 2])", "1", extreme(0), 1, MANY, ("axis",),
              aliases=("minimum", "amin")),
    Operation("max", "max(x), max(x, y)", "largest; of two element by element",
              "max([3, 1, 2], 2)", "[3, 2, 2]", extreme(1), 1, MANY, ("axis",),
              aliases=("maximum", "amax")),
    _reduction("argmin", "place of the first smallest, from 0", "argmin([3, 1, 2])", "1",
               reducing("find_extreme", 2, has_error=False)),
    _reduction("argmax", "place of the first largest, from 0", "argmax([3, 1, 2])", "0",
               reducing("find_extreme", 3, has_error=False)),
    _reduction("count", "how many are true (not 0)", "count([1, 5, 7] > 3)", "2", summing(2),
               "count_nonzero"),
    _reduction("len", "how many there are", "len([1, 5, 7])", "3", summing(3), "size"),
    _reduction("any", "whether one is true", "any([1, 5, 7] > 6)", "true",
               reducing("find_extreme", 4, truth=True, has_error=False)),
    _reduction("all", "whether all are true", "all([1, 5, 7] > 6)", "false",
               reducing("find_extreme", 5, truth=True, has_error=False)),
    Operation("sort", "sort(x), sort(x, desc)", "numbers of a vector in order",
              "sort([3, 1, 2], desc)", "[3, 2, 1]", sorting(0), words=("desc",),
              aliases=("sorted",)),
    _one("sort_desc", "sort_desc(x)", "numbers of a vector, largest first",
         "sort_desc([3, 1, 2])", "[3, 2, 1]", sorting(1)),
    _one("reverse", "reverse(x)", "last first", "reverse([1, 2, 3])", "[3, 2, 1]", reverse,
         "reversed", "flip"),
    Operation("item", "x[i], m[i, j]", "an element or row, places counted from 0",
              "sort([30, 10, 20])[1]", "20", item, 2, 3),
    _one("cumsum", "cumsum(x)", "running sums", "cumsum([1, 2, 3])", "[1, 3, 6]", scanning(0)),
    _one("cumprod", "cumprod(x)", "running products", "cumprod([1, 2, 3])", "[1, 2, 6]",
         scanning(1)),
    _one("diff", "diff(x)", "differences of neighbours", "diff([1, 4, 9])", "[3, 5]", diff),
    Operation("range", "range(n), range(a, b), range(a, b, step)",
              "numbers from a (0) up to b, without b", "range(1, 6)", "[1, 2, 3, 4, 5]", range_,
              1, 3, aliases=("arange",)),
    Operation("where", "where(c, x, y)", "x where c is true, else y",
              "where([1, 0], [2, 3], 9)", "[2, 9]", choose, 3, 3),
    Operation("clip", "clip(x, low, high)", "x kept in a range", "clip([-5, 3, 99], 0, 10)",
              "[0, 3, 10]", elementwise("choose_number", 1, has_error=False), 3, 3),
    _pair("gcd", "gcd(x, y)", "greatest common divisor", "gcd(48, 36)", "12",
          elementwise("common_divisor", 0)),
    _pair("lcm", "lcm(x, y)", "least common multiple", "lcm(4, 6)", "12",
          elementwise("common_divisor", 1)),
    _one("sqrt", "sqrt(x)", "square root rounded down", "sqrt(30)", "5",
         elementwise("integer_root"), "isqrt"),
    _one("factorial", "factorial(n), n!", "1 · 2 · … · n", "factorial(10)", "3628800",
         elementwise("number_sequence", 0)),
    _one("fibonacci", "fibonacci(n)", "Fibonacci number; fibonacci(1) = fibonacci(2) = 1",
         "fibonacci(30)", "832040", elementwise("number_sequence", 1), "fib"),
    _one("is_prime", "is_prime(x)", "whether x is a prime number", "is_prime([91, 97])",
         "[false, true]", elementwise("prime_test", truth=True, has_error=False), "isprime"),
)  # fmt: skip

BY_NAME = {
    name: operation for operation in OPERATIONS for name in (operation.name, *operation.aliases)
}
"""All names that can be called."""


def operations_table() -> str:
    """The table in Markdown, as docs/expressions.md has it."""
    lines = ["| written | gives | for example | value |", "|---|---|---|---|"]
    for operation in OPERATIONS:
        form = ", ".join(f"`{part}`" for part in _split(operation.form)).replace("|", "\\|")
        names = "".join(f", `{alias}`" for alias in operation.aliases)
        example = operation.example.replace("|", "\\|")
        lines.append(
            f"| {form}{names and f' ({names[2:]})'} | {operation.meaning} | `{example}` | "
            f"`{operation.value}` |"
        )
    return "\n".join(lines) + "\n"


def _split(form: str) -> list[str]:
    """The ways to write an operation; commas in parentheses do not part them."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(form):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(form[start:place])
            start = place + 2
    return [*parts, form[start:]]
