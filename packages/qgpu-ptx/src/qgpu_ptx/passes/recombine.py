"""Puts numbers together that were taken apart: y * width + x of one thread number is that number.

A thread's coordinates are quotient and remainder of its number; kernels often join them again.
"""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import lasting_definitions, maker
from qgpu_ptx.ir import WORD, ZERO, Function, Imm, Op, Pred, Reg, Value

Definitions = dict[Reg | Pred, Op]
Sum = tuple[str, Value, Value]
"""An operation in place of a sum: its name and its operands."""


def recombine(function: Function) -> Function:
    """Replaces sums of a quotient's multiple and the remainder."""
    lasting = lasting_definitions(function)
    blocks = []
    for block in function.blocks:
        ops = []
        for op in block.ops:
            found = _join(op, lasting)
            if found is not None:
                op = replace(op, name=found[0], a=found[1], b=found[2])
                if op.dst in lasting:
                    lasting[op.dst] = op
            ops.append(op)
        blocks.append(replace(block, ops=tuple(ops)))
    return replace(function, blocks=tuple(blocks))


def _join(op: Op, known: Definitions) -> Sum | None:
    if op.name not in ("add", "or") or op.is_memory:
        return None
    for high, low in ((op.a, op.b), (op.b, op.a)):
        found = _join_bits(maker(high, known), maker(low, known), known)
        if found is None and op.name == "add":
            found = _join_product(high, maker(low, known), known)
            found = found or _subtract(high, maker(low, known))
        if found is not None:
            return found
    return None


def _join_bits(high: Op, low: Op, known: Definitions) -> Sum | None:
    """Bits of one value at their own places, disjoint: the high part, and the lowest bits."""
    if low.name != "and" or not isinstance(low.b, Imm) or low.b.value & low.b.value + 1:
        return None
    width = low.b.value.bit_length()
    mask = _bits_in_place(high, low.a, width, known)
    if mask is None or mask & low.b.value:
        return None
    whole = mask | low.b.value
    return ("mov", low.a, ZERO) if whole == WORD else ("and", low.a, Imm(whole))


def _bits_in_place(op: Op, value: Value, width: int, known: Definitions) -> int | None:
    """The mask if an operation is `value & mask`, above the lowest `width` bits or so."""
    if op.name == "and" and op.a == value and isinstance(op.b, Imm):
        return op.b.value
    if op.name != "shl" or op.b != Imm(width):
        return None
    field = maker(op.a, known)
    mask = WORD
    if field.name == "and" and isinstance(field.b, Imm):
        mask = field.b.value
        field = maker(field.a, known)
    if _shift(field) == width and field.a == value:
        return mask << width & WORD
    # The value itself may be shifted already: (v >> j) << k beside v >> (j - k).
    inner = maker(value, known)
    before = _shift(inner)
    if before is not None and _shift(field) == before + width and field.a == inner.a:
        return mask << width & WORD
    return None


def _shift(op: Op) -> int | None:
    return op.b.value if op.name == "shr" and isinstance(op.b, Imm) else None


def _join_product(high: Value, low: Op, known: Definitions) -> Sum | None:
    """q * n + (v - q * n) is v."""
    if low.name != "sub":
        return None
    x, y = maker(high, known), maker(low.b, known)
    same = (x.name, x.a, x.b) == (y.name, y.a, y.b) and x.name != "mov"
    return ("mov", low.a, ZERO) if high == low.b or same else None


def _subtract(high: Value, low: Op) -> Sum | None:
    """u + (0 - v) is u - v."""
    return ("sub", high, low.b) if low.name == "sub" and low.a == ZERO else None
