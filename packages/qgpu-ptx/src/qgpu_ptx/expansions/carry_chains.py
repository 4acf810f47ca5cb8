"""Carry chains: add.cc addc sub.cc subc mad.cc madc. The carry flag is a register of 0 or 1."""

from __future__ import annotations

from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.instruction_context import InstructionContext, Words
from qgpu_ptx.ir import ZERO, Value
from qgpu_ptx.ir_builder import IrBuilder
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES


@expansion("addc", "subc", "madc")
def with_carry(c: InstructionContext, m: Modifiers) -> None:
    """A link of a chain that also takes the carry."""
    chain(c, m)


def chain(c: InstructionContext, m: Modifiers) -> None:
    """A sum, difference or multiply-add that takes or sets the carry flag."""
    from qgpu_ptx.expansions.arithmetic import check_count, product, source

    check_count(c, 4 if "part" in m else 3)
    type_ = SCALAR_TYPES[m["type"]]
    x, y = source(c, m, 1), source(c, m, 2)
    if "part" in m:
        x, y = product(c.b, m["part"], type_, x, y), source(c, m, 3)
    carry: Value = c.carry() if c.node.opcode.endswith("c") else ZERO
    step = _subtract if c.node.opcode in ("sub", "subc") else _add
    words = []
    for p, q in zip(x, y, strict=True):
        result, carry = step(c.b, p, q, carry)
        words.append(result)
    c.write(c.operands[0], type_, _words(words))
    if "cc" in m:
        c.b.assign(c.carry(), carry)


def _words(words: list[Value]) -> Words:
    return (words[0], words[1]) if len(words) == 2 else (words[0],)


def _add(b: IrBuilder, x: Value, y: Value, carry: Value) -> tuple[Value, Value]:
    first = b.add(x, y)
    total = b.add(first, carry)
    over = b.flag("setltu", first, y)
    if carry == ZERO:
        return total, over
    return total, b.or_(over, b.flag("setltu", total, carry))


def _subtract(b: IrBuilder, x: Value, y: Value, borrow: Value) -> tuple[Value, Value]:
    first = b.sub(x, y)
    under = b.flag("setltu", x, y)
    if borrow == ZERO:
        return first, under
    return b.sub(first, borrow), b.or_(under, b.flag("setltu", first, borrow))
