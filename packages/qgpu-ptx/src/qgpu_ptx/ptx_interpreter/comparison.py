"""Comparison and selection (PTX ISA, "Comparison and Selection Instructions")."""

from __future__ import annotations

import operator
from collections.abc import Callable

from qgpu_ptx.ptx_interpreter.instruction_table import (
    ALL_INTEGERS,
    BITS,
    INTEGERS,
    Executor,
    Modifiers,
    instruction,
    lane_instruction,
    operand_type,
)
from qgpu_ptx.ptx_interpreter.machine import Lane, Warp
from qgpu_ptx.ptx_interpreter.operands import OperandDecoder, Reader
from qgpu_ptx.ptx_interpreter.scalar_types import PRED, SCALAR_TYPES

_REF = "Comparison and Selection Instructions: "
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "lo": operator.lt,
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
}
_COMBINE: dict[str, Callable[[int, int], int]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_UNSIGNED = "u16|u32|u64"
# Which comparisons each group of types takes: bit patterns have no order, and lo/ls/hi/hs are
# the unsigned order only.
_SHAPES = (
    ("eq|ne", ALL_INTEGERS),
    ("lt|le|gt|ge", INTEGERS),
    ("lo|ls|hi|hs", _UNSIGNED),
)


def _test(d: OperandDecoder, m: Modifiers) -> tuple[Reader, Reader]:
    """Readers of the comparison and of the combining predicate (1 without one)."""
    type_ = operand_type("T", m)
    d.expect(4 if "bool" in m else 3)
    a, b = (d.reader(operand, type_) for operand in d.operands[1:3])
    compare = _COMPARE[m["cmp"]]
    other: Reader = d.reader(d.operands[3], PRED) if "bool" in m else lambda lane: 1
    return (lambda lane: int(compare(a(lane), b(lane)))), other


def _register_setp() -> None:
    for cmp, types in _SHAPES:
        modifiers = f"cmp={cmp} bool?=and|or|xor type={types}"
        instruction("setp", modifiers, reference=_REF + "setp", operands="p[|q] <- T T [p]")(setp)
        modifiers = f"cmp={cmp} bool?=and|or|xor to=u32|s32 type={types}"
        instruction("set", modifiers, reference=_REF + "set", operands="to <- T T [p]")(set_)


def setp(d: OperandDecoder, m: Modifiers) -> Executor:
    """Compares; p is the comparison and q its complement, each combined with c."""
    first, second = d.pair(d.operands[0]) if d.operands else (None, None)
    test, other = _test(d, m)
    assert first is not None
    write_p = d.writer(first, PRED)
    write_q = d.writer(second, PRED) if second is not None else None
    combine = _COMBINE[m.get("bool", "and")]

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            result, c = test(lane), other(lane)
            write_p(lane, combine(result, c))
            if write_q is not None:
                write_q(lane, combine(result ^ 1, c))

    return execute


def set_(d: OperandDecoder, m: Modifiers) -> Executor:
    """Compares; the result is all ones or 0."""
    test, other = _test(d, m)
    write = d.writer(d.operands[0], SCALAR_TYPES[m["to"]])
    combine = _COMBINE[m.get("bool", "and")]

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            write(lane, -combine(test(lane), other(lane)))

    return execute


_register_setp()


@lane_instruction("selp", f"type={ALL_INTEGERS}", "T <- T T pred", reference=_REF + "selp")
def selp(m: Modifiers, a: int, b: int, p: int) -> int:
    """a if p, else b."""
    return a if p else b


@lane_instruction("slct", f"type={BITS}|{INTEGERS} by=s32", "T <- T T s32", reference=_REF + "slct")
def slct(m: Modifiers, a: int, b: int, c: int) -> int:
    """a if c is not negative, else b."""
    return a if c >= 0 else b
