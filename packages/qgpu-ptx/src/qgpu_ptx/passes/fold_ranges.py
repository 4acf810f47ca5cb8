"""Removes comparisons that always come out the same way, and masks that remove nothing."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.ir import WORD, ZERO, Function, Imm, Op, Pred, Value
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.simplify_op import COMPARES
from qgpu_ptx.value_ranges import ValueRanges, compare_ranges


def fold_ranges(function: Function, shape: LaunchShape) -> Function:
    """Uses the ranges of thread numbers and what is computed from them."""
    ranges = ValueRanges(function, shape)
    blocks = []
    for block in function.blocks:
        ops = tuple(_fold(op, ranges) for op in block.ops)
        blocks.append(replace(block, ops=ops))
    return replace(function, blocks=tuple(blocks))


def _fold(op: Op, ranges: ValueRanges) -> Op:
    if op.name in COMPARES:
        truth = compare_ranges(op.name, ranges.of(op.a), ranges.of(op.b))
        if truth is None:
            return op
        if isinstance(op.dst, Pred):
            return replace(op, name="seteq" if truth else "setne", a=ZERO, b=ZERO)
        return replace(op, name="mov", a=Imm(int(truth)), b=ZERO)
    same = _unchanged(op, ranges)
    return op if same is None else replace(op, name="mov", a=same, b=ZERO)


def _unchanged(op: Op, ranges: ValueRanges) -> Value | None:
    """The operand or constant that an operation always gives."""
    if op.is_memory or op.name in ("mov", "sel", "setp", "ballot"):
        return None
    low, high = ranges.of(op.a)
    if isinstance(op.b, Imm):
        number = op.b.value
        bits = (1 << high.bit_length()) - 1
        match op.name:
            case "and" if bits & ~number == 0:
                return op.a
            case "and" if bits & number == 0:
                return ZERO
            case "shr" if high >> min(number, 32) == 0:
                return ZERO
            case "extbs" if high <= 0x7F and number & 3 == 0:
                return op.a
            case "exths" if high <= 0x7FFF and number & 2 == 0:
                return op.a
            case "sar" if high <= WORD >> 1 and high >> min(number, 31) == 0:
                return ZERO
            case "minu" if high <= number:
                return op.a
            case "maxu" if low >= number:
                return op.a
            case "mins" if high <= number <= WORD >> 1:
                return op.a
            case "maxs" if number == 0 and high <= WORD >> 1:
                return op.a
            case "add":
                return _sign_extension(op, ranges, -number & WORD)
    return None


def _sign_extension(op: Op, ranges: ValueRanges, top: int) -> Value | None:
    """x of (x ^ top) - top, if x is too small to have that sign bit."""
    inner = ranges.definition(op.a)
    if inner is None or inner.name != "xor" or inner.b != Imm(top):
        return None
    return inner.a if ranges.of(inner.a)[1] < top else None
