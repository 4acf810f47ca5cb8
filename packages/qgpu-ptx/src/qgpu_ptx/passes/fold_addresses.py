"""Puts address arithmetic into the access: slot A0 computes one operation for free."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import define_here, lasting_definitions
from qgpu_ptx.ir import WORD, ZERO, Address, Function, Imm, Op, Pred, Reg, Value
from qgpu_ptx.simplify_op import LEA_SHIFT

_ADDERS = {shift: name for name, shift in LEA_SHIFT.items()}


Definitions = dict[Reg | Pred, Op]


def fold_addresses(function: Function) -> Function:
    """Rewrites every address to the richest single operation that computes it."""
    lasting = lasting_definitions(function)
    blocks = []
    for block in function.blocks:
        # Definitions that hold here: lasting ones, and those of this block that nothing changed.
        here: Definitions = dict(lasting)
        ops = []
        for op in block.ops:
            if op.address is not None:
                op = replace(op, address=_fold(op.address, here))
            ops.append(op)
            define_here(here, op, lasting)
        blocks.append(replace(block, ops=tuple(ops)))
    return replace(function, blocks=tuple(blocks))


def _definition(value: Value, here: Definitions) -> Op | None:
    return here.get(value) if isinstance(value, Reg) else None


def _fold(address: Address, here: Definitions) -> Address:
    for _ in range(16):
        new = _step(address, here)
        if new == address:
            break
        address = new
    return address


def _step(address: Address, here: Definitions) -> Address:
    """One definition folded in; the address keeps the form (a << shift) + b where it can."""
    if address.name not in LEA_SHIFT:
        return address
    shift = LEA_SHIFT[address.name]
    a, b = address.a, address.b
    if shift == 0 and isinstance(a, Imm):
        a, b = b, a
    inner = _definition(a, here)
    if inner is not None:
        if shift + _shift(inner) in _ADDERS:
            return Address(_ADDERS[shift + _shift(inner)], inner.a, b)
        if inner.name == "add" and isinstance(inner.b, Imm) and isinstance(b, Imm):
            offset = b.value + (inner.b.value << shift) & WORD
            return Address(address.name, inner.a, Imm(offset))
        if shift == 0 and b == ZERO and inner.name in ("add", "sub", "and", "or", "xor"):
            return Address(inner.name, inner.a, inner.b)
    if shift == 0:
        other = _definition(b, here)
        scale = _shift(other)
        if other is not None and scale in _ADDERS:
            return Address(_ADDERS[scale], other.a, a)
    return Address(address.name, a, b)


def _shift(op: Op | None) -> int:
    """By how much an operation shifts left; a large number if it is no shift by a constant."""
    if op is not None and op.name == "shl" and isinstance(op.b, Imm):
        return op.b.value
    return 32
