"""Random expressions against the second evaluator, overflow and division by zero included."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qgpu_run.expression import CalculationError, Calculator
from qgpu_run.expression.format_value import format_value
from qgpu_run.expression.operations import BY_NAME

Shape = tuple[int, ...]

SIGNS = {
    "add": "{} + {}", "subtract": "{} - {}", "multiply": "{} * {}", "divide": "{} / {}",
    "remainder": "{} % {}", "floor_divide": "{} // {}", "less": "{} < {}", "equal": "{} == {}",
    "bit_and": "{} & {}", "bit_xor": "{} xor {}", "logical_and": "{} and {}",
    "logical_or": "{} or {}", "logical_not": "not {}", "negative": "-{}", "power": "{} ** {}",
    "left_shift": "{} << {}", "matmul": "{} @ {}", "transpose": "{}.T",
}  # fmt: skip
ELEMENT = ["negative", "abs", "sign", "logical_not", "popcount", "sqrt", "factorial"]
PAIRS = [
    "add", "subtract", "multiply", "divide", "remainder", "floor_divide", "mod", "less", "equal",
    "bit_and", "bit_xor", "logical_and", "logical_or", "gcd", "lcm", "power", "left_shift",
]  # fmt: skip
REDUCTIONS = ["sum", "prod", "mean", "min", "max", "argmin", "argmax", "count", "any", "norm2"]
VECTOR = ["sort", "sort_desc", "reverse", "cumsum", "cumprod"]


@dataclass
class Term:
    """A part of a random expression: an operation on parts, a list of scalars, or a number."""

    text: str
    name: str = ""
    parts: tuple[Term, ...] = ()
    number: int = 0

    def value(self, reference: ModuleType) -> tuple[Any, set[str]]:
        """What it gives, or how the message of the first launch begins that gives nothing."""
        values = []
        for part in self.parts:
            value, kinds = part.value(reference)
            if kinds:
                return None, kinds
            values.append(value)
        if self.name == "list":
            return np.array(values, dtype=object), set()
        if not self.name:
            return np.array(self.number, dtype=object), set()
        found: tuple[Any, set[str]] = reference.value_or_kinds(self.name, *values)
        return found


def applied(name: str, *parts: Term) -> Term:
    texts = [part.text for part in parts]
    if name in SIGNS:
        return Term(f"({SIGNS[name].format(*texts)})", name, parts)
    return Term(f"{name}({', '.join(texts)})", name, parts)


@st.composite
def terms(draw: Any, shape: Shape, depth: int) -> Term:
    """An expression of a shape."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        if not shape:
            number = draw(
                st.integers(-9, 9)
                | st.sampled_from([2**31 - 1, -(2**31), 46341, 65536])
                | st.integers(-(2**31), 2**31 - 1)
            )
            return Term(f"({number})" if number < 0 else str(number), number=number)
        inner = 0 if draw(st.booleans()) else min(depth, 1)
        items = tuple(draw(terms(shape[1:], inner)) for _ in range(shape[0]))
        return Term(f"[{', '.join(item.text for item in items)}]", "list", items)
    ways = ["element", "pair", "pair"]
    if not shape:
        ways += ["reduction", "dot"]
    if len(shape) == 1:
        ways += ["vector", "product"]
    if len(shape) == 2:
        ways += ["transpose", "outer", "matrices"]
    match draw(st.sampled_from(ways)):
        case "element":
            return applied(draw(st.sampled_from(ELEMENT)), draw(terms(shape, depth - 1)))
        case "pair":
            shapes = draw(st.sampled_from([(shape, shape), (shape, ()), ((), shape)]))
            parts = [draw(terms(s, depth - 1)) for s in shapes]
            return applied(draw(st.sampled_from(PAIRS)), *parts)
        case "reduction":
            of = draw(st.sampled_from([(3,), (13,), (2, 3)]))
            return applied(draw(st.sampled_from(REDUCTIONS)), draw(terms(of, depth - 1)))
        case "vector":
            return applied(draw(st.sampled_from(VECTOR)), draw(terms(shape, depth - 1)))
        case "transpose":
            return applied("transpose", draw(terms(shape[::-1], depth - 1)))
        case "outer":
            return applied("outer", *(draw(terms((n,), depth - 1)) for n in shape))
    inner = draw(st.integers(1, 3))
    rows, cols = {0: ((), ()), 1: ((), shape), 2: (shape[:1], shape[1:])}[len(shape)]
    left, right = draw(terms((*rows, inner), depth - 1)), draw(terms((inner, *cols), depth - 1))
    return applied("matmul", left, right)


def shape_of_any() -> st.SearchStrategy[Shape]:
    return st.sampled_from([(), (), (1,), (3,), (2, 3)])


def check(calculator: Calculator, reference: ModuleType, term: Term) -> None:
    wanted, kinds = term.value(reference)
    if kinds:
        with pytest.raises(CalculationError) as caught:
            calculator.evaluate(term.text)
        assert any(caught.value.message.startswith(kind) for kind in kinds), term.text
        return
    found = calculator.evaluate(term.text).value
    assert np.shape(found) == np.shape(wanted), term.text
    assert (np.array(found, dtype=object) == wanted).all(), (term.text, format_value(found))


QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@QUICK
@given(data=st.data())
def test_random(data: st.DataObject, calculator: Calculator, reference: ModuleType) -> None:
    check(calculator, reference, data.draw(terms(data.draw(shape_of_any()), 3)))


@pytest.mark.slow
@settings(QUICK, max_examples=300)
@given(data=st.data())
def test_many_random(data: st.DataObject, calculator: Calculator, reference: ModuleType) -> None:
    check(calculator, reference, data.draw(terms(data.draw(shape_of_any()), 4)))


def test_names_are_those_of_the_table() -> None:
    assert {*SIGNS, *ELEMENT, *PAIRS, *REDUCTIONS, *VECTOR} <= set(BY_NAME)
