"""Carry chains (PTX ISA, "Extended-Precision Integer Arithmetic Instructions").

The carry flag belongs to the thread. `add.cc` and `mad.cc` set it to the carry-out, `sub.cc` to
the borrow-out; `subc` subtracts it.
"""

from __future__ import annotations

from collections.abc import Callable

from qgpu_ptx.ptx_interpreter.instruction_table import (
    Executor,
    Modifiers,
    instruction,
    operand_type,
)
from qgpu_ptx.ptx_interpreter.machine import Lane, Warp
from qgpu_ptx.ptx_interpreter.operands import OperandDecoder
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

_TYPE = "type=u32|s32|u64|s64"
_REF = "Extended-Precision Integer Arithmetic Instructions"


def _chain(
    d: OperandDecoder, m: Modifiers, sources: int, compute: Callable[..., int], *, carry_in: bool
) -> Executor:
    """Executor for a sum of unsigned bit patterns; what exceeds the width is the carry."""
    type_ = operand_type("T", m)
    d.expect(sources + 1)
    write = d.writer(d.operands[0], type_)
    readers = [d.reader(operand, type_) for operand in d.operands[1:]]
    sets_carry = "cc" in m

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            total = compute(lane.carry if carry_in else 0, *[read(lane) for read in readers])
            write(lane, total)
            if sets_carry:
                lane.carry = total >> type_.bits & 1

    return execute


@instruction("add", f"cc=cc {_TYPE}", reference=_REF, operands="T <- T T")
@instruction("addc", f"cc?=cc {_TYPE}", reference=_REF, operands="T <- T T")
def addc(d: OperandDecoder, m: Modifiers) -> Executor:
    """Sum, with carry in (addc) and carry out (.cc)."""
    mask = SCALAR_TYPES[m["type"]].mask
    return _chain(
        d,
        m,
        2,
        lambda carry, a, b: (a & mask) + (b & mask) + carry,
        carry_in=d.node.opcode == "addc",
    )


@instruction("sub", f"cc=cc {_TYPE}", reference=_REF, operands="T <- T T")
@instruction("subc", f"cc?=cc {_TYPE}", reference=_REF, operands="T <- T T")
def subc(d: OperandDecoder, m: Modifiers) -> Executor:
    """Difference, with borrow in (subc) and borrow out (.cc)."""
    mask = SCALAR_TYPES[m["type"]].mask
    # A negative difference shifted right has its lowest bit set: that bit is the borrow.
    return _chain(
        d,
        m,
        2,
        lambda borrow, a, b: (a & mask) - (b & mask) - borrow,
        carry_in=d.node.opcode == "subc",
    )


@instruction("mad", f"part=lo|hi cc=cc {_TYPE}", reference=_REF, operands="T <- T T T")
@instruction("madc", f"part=lo|hi cc?=cc {_TYPE}", reference=_REF, operands="T <- T T T")
def madc(d: OperandDecoder, m: Modifiers) -> Executor:
    """Half of a product plus c, with carry in (madc) and carry out (.cc)."""
    type_ = SCALAR_TYPES[m["type"]]
    high = m["part"] == "hi"

    def compute(carry: int, a: int, b: int, c: int) -> int:
        product = a * b
        half = (product >> type_.bits if high else product) & type_.mask
        return half + (c & type_.mask) + carry

    return _chain(d, m, 3, compute, carry_in=d.node.opcode == "madc")
