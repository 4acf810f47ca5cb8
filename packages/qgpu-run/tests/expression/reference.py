"""Every operation a second time, on Python's unlimited integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LOWEST, HIGHEST = -(2**31), 2**31 - 1


class CannotError(Exception):
    """There is no value; `kinds` are the words one of which the message must begin with."""

    def __init__(self, kinds: set[str]) -> None:
        super().__init__(kinds)
        self.kinds = kinds


def wide(values: Any) -> Array:
    return np.array(values, dtype=object)


def checked(values: Any) -> Array:
    """Values of which all fit 32 bits."""
    array = wide(values)
    if any(not LOWEST <= int(v) <= HIGHEST for v in array.ravel()):
        raise CannotError({"overflow"})
    return array


def each(function: Callable[..., int]) -> Callable[..., Array]:
    """An operation element by element, whose results must fit; several may go wrong."""

    def apply(*arrays: Array) -> Array:
        broadcast = np.broadcast(*arrays)
        results: list[int] = []
        kinds: set[str] = set()
        for row in broadcast:
            try:
                value = function(*(int(v) for v in row))
                if not LOWEST <= value <= HIGHEST:
                    raise CannotError({"overflow"})
                results.append(value)
            except CannotError as error:
                kinds |= error.kinds
        if kinds:
            raise CannotError(kinds)
        return wide(results).reshape(broadcast.shape)

    return apply


def _nonzero(y: int) -> int:
    if y == 0:
        raise CannotError({"division by zero"})
    return y


def _truncated(x: int, y: int) -> int:
    size = abs(x) // abs(_nonzero(y))
    return size if (x < 0) == (y < 0) else -size


def _power(x: int, y: int) -> int:
    if y < 0:
        raise CannotError({"negative exponent"})
    if abs(x) > 1 and y > 31:
        raise CannotError({"overflow"})
    return x ** (y if abs(x) > 1 else min(y, 2 + y % 2))


def _shift(x: int, y: int, left: bool) -> int:
    if not 0 <= y <= 31:
        raise CannotError({"a shift"})
    return x << y if left else x >> y


def _natural(x: int, name: str) -> int:
    if x < 0:
        raise CannotError({f"{name} of a negative"})
    return x


def _factorial(n: int) -> int:
    return math.factorial(min(_natural(n, "factorial"), 13))


def _fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(min(_natural(n, "fibonacci"), 47)):
        a, b = b, a + b
    return a


def _is_prime(v: int) -> bool:
    return v > 1 and all(v % d for d in range(2, math.isqrt(v) + 1))


def along(function: Callable[[Array], Any]) -> Callable[..., Array]:
    """A reduction of all, or of rows or columns."""

    def apply(array: Array, axis: int | None = None) -> Array:
        if axis is None or array.ndim < 2:
            return checked(function(array.ravel()))
        rows = array.T if axis == 0 else array
        return checked([function(row) for row in rows])

    return apply


def _mean(row: Array) -> int:
    total = int(sum(row))
    checked(total)
    return _truncated(total, len(row))


REFERENCE: dict[str, Callable[..., Array]] = {
    "add": each(lambda x, y: x + y),
    "subtract": each(lambda x, y: x - y),
    "multiply": each(lambda x, y: x * y),
    "divide": each(_truncated),
    "remainder": each(lambda x, y: x - y * _truncated(x, y)),
    "floor_divide": each(lambda x, y: x // _nonzero(y)),
    "mod": each(lambda x, y: x % _nonzero(y)),
    "power": each(_power),
    "negative": each(lambda x: -x),
    "abs": each(abs),
    "sign": each(lambda x: (x > 0) - (x < 0)),
    "equal": each(lambda x, y: x == y),
    "not_equal": each(lambda x, y: x != y),
    "less": each(lambda x, y: x < y),
    "less_equal": each(lambda x, y: x <= y),
    "greater": each(lambda x, y: x > y),
    "greater_equal": each(lambda x, y: x >= y),
    "logical_and": each(lambda x, y: bool(x and y)),
    "logical_or": each(lambda x, y: bool(x or y)),
    "logical_not": each(lambda x: not x),
    "bit_and": each(lambda x, y: x & y),
    "bit_or": each(lambda x, y: x | y),
    "bit_xor": each(lambda x, y: x ^ y),
    "left_shift": each(lambda x, y: _shift(x, y, True)),
    "right_shift": each(lambda x, y: _shift(x, y, False)),
    "popcount": each(lambda x: (x % 2**32).bit_count()),
    "matmul": lambda x, y: checked(x @ y),
    "dot_sign": lambda x, y: checked(x @ y if x.ndim and y.ndim else x * y),
    "outer": lambda x, y: checked(np.outer(x, y)),
    "transpose": lambda x: x.T,
    "trace": lambda x: checked(np.trace(x)),
    "norm2": lambda x: checked(sum(v * v for v in x.ravel())),
    "sum": along(sum),
    "prod": along(math.prod),
    "mean": along(_mean),
    "min": along(min),
    "max": along(max),
    "argmin": along(lambda row: row.tolist().index(min(row))),
    "argmax": along(lambda row: row.tolist().index(max(row))),
    "count": along(lambda row: sum(v != 0 for v in row)),
    "len": along(len),
    "any": along(lambda row: any(v != 0 for v in row)),
    "all": along(lambda row: all(v != 0 for v in row)),
    "sort": lambda x: wide(sorted(x)),
    "sort_desc": lambda x: wide(sorted(x, reverse=True)),
    "reverse": lambda x: x[::-1],
    "item": lambda x, *places: wide(x[tuple(map(int, places))]),
    "cumsum": lambda x: checked([sum(x[: k + 1]) for k in range(len(x))]),
    "cumprod": lambda x: checked([math.prod(x[: k + 1]) for k in range(len(x))]),
    "diff": lambda x: checked(np.diff(x)),
    "range": lambda *bounds: wide(range(*map(int, bounds))),
    "where": lambda c, x, y: wide(np.where(c != 0, x, y)),
    "clip": each(lambda x, low, high: min(max(x, low), high)),
    "gcd": each(math.gcd),
    "lcm": each(math.lcm),
    "sqrt": each(lambda x: math.isqrt(_natural(x, "sqrt"))),
    "factorial": each(_factorial),
    "fibonacci": each(_fibonacci),
    "is_prime": each(_is_prime),
}


def value_or_kinds(name: str, *arguments: Any) -> tuple[Array | None, set[str]]:
    """The value of an operation, or how the message begins that says why there is none."""
    try:
        return REFERENCE[name](*arguments), set()
    except CannotError as cannot:
        return None, cannot.kinds
