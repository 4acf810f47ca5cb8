"""Quotients and remainders by constants: the pass keeps their values, for every divisor."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qgpu_ptx.divide_constant import divide_unsigned
from qgpu_ptx.ir import EXIT, WORD, BasicBlock, Function, Imm, Op, Reg, Terminator
from qgpu_ptx.ir_builder import IrBuilder
from qgpu_ptx.passes.remove_dead import remove_dead
from qgpu_ptx.passes.round_quotients import round_quotients
from qgpu_ptx.simplify_op import evaluate

DIVIDEND, QUOTIENT, REST = (Reg(n) for n in (1000, 1001, 1002))


def division(divisor: int, *, again: bool) -> Function:
    """Quotient and remainder as compilers write them; `again`: the dividend is set twice."""
    builder = IrBuilder("k")
    quotient = divide_unsigned(builder, DIVIDEND, divisor)
    builder.assign(QUOTIENT, quotient)
    product = builder.op("mullo", quotient, divisor)
    builder.assign(REST, builder.sub(DIVIDEND, product))
    ops = builder.finish().blocks[0].ops
    first = (Op("mov", DIVIDEND, Imm(0)), Op("mov", DIVIDEND, Imm(0)))[: 1 + again]
    last = (Op("st", b=QUOTIENT), Op("st", b=REST))
    return Function("k", (BasicBlock("entry", (*first, *ops, *last), Terminator(EXIT)),))


def results(function: Function, dividend: int) -> tuple[int, int]:
    """Quotient and remainder; the dividend stands in place of what it is set to."""
    values: dict[object, int] = {}
    for op in function.ops():
        if op.dst is not None:
            a, b = (v.value if isinstance(v, Imm) else values[v] for v in (op.a, op.b))
            result = a if op.name == "mov" else evaluate(op.name, a, b)
            values[op.dst] = dividend if op.dst == DIVIDEND else result
    return values[QUOTIENT], values[REST]


def names(function: Function) -> set[str]:
    return {op.name for op in function.ops()}


words = st.integers(0, 32).flatmap(lambda bits: st.integers(0, (1 << bits) - 1))


@given(divisor=words.filter(lambda n: n > 2), dividend=words, again=st.booleans())
def test_results_stay(divisor: int, dividend: int, again: bool) -> None:
    function = round_quotients(division(divisor, again=again))
    rng = random.Random(dividend)
    near = divisor * rng.randrange(WORD // divisor + 1)
    for value in (dividend, near, near - 1 & WORD, near + divisor - 1 & WORD, 0, WORD):
        assert results(function, value) == divmod(value, divisor)


@pytest.mark.parametrize("divisor", [3, 5, 7, 10, 26, 1000, 65521, 641 * 3])
def test_the_shift_goes(divisor: int) -> None:
    before = division(divisor, again=True)
    assert "shr" in names(before)
    assert "shr" not in names(remove_dead(round_quotients(before)))


def test_what_divides_only_small_numbers_stays() -> None:
    """A factor that is exact up to a limit alone is not taken for a quotient of every word."""
    builder = IrBuilder("k")
    builder.assign(QUOTIENT, divide_unsigned(builder, DIVIDEND, 1000, 1 << 20))
    function = builder.finish()
    assert round_quotients(function) == function
