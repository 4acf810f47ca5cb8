"""Products and shifts, which share the multiplier."""

from __future__ import annotations

from qgpu_isa.instruction import Slot, instruction
from qgpu_isa.units import Multiplier
from qgpu_isa.words import signed, wrap

X = (Slot.X,)


@instruction(opcode=1, slots=X, unit=Multiplier())
def mullo(a: int, b: int, flag: bool) -> int:
    """Lower word of a * b."""
    return wrap(a * b)


@instruction(opcode=2, slots=X, unit=Multiplier(high=True))
def mulhiu(a: int, b: int, flag: bool) -> int:
    """Upper word of a * b, both unsigned."""
    return (a * b) >> 32


@instruction(opcode=3, slots=X, unit=Multiplier(high=True, signed_a=True, signed_b=True))
def mulhis(a: int, b: int, flag: bool) -> int:
    """Upper word of a * b, both signed."""
    return wrap((signed(a) * signed(b)) >> 32)


@instruction(opcode=4, slots=X, unit=Multiplier(shift="left"))
def shl(a: int, b: int, flag: bool) -> int:
    """a shifted left by b bits; 0 from 32 bits on (PTX ISA, shl)."""
    return wrap(a << b) if b < 32 else 0


@instruction(opcode=5, slots=X, unit=Multiplier(high=True, shift="right"))
def shr(a: int, b: int, flag: bool) -> int:
    """a shifted right by b bits, zeros in front; 0 from 32 bits on (PTX ISA, shr)."""
    return a >> b if b < 32 else 0


@instruction(opcode=6, slots=X, unit=Multiplier(high=True, signed_a=True, shift="right"))
def sar(a: int, b: int, flag: bool) -> int:
    """a shifted right by b bits, sign bits in front; all sign from 31 bits on (PTX ISA, shr)."""
    return wrap(signed(a) >> min(b, 31))


@instruction(opcode=7, slots=X, unit=Multiplier(shift="bytes"))
def shlb(a: int, b: int, flag: bool) -> int:
    """a moved up to the byte address b (modulo 4) in the word."""
    return wrap(a << 8 * (b & 3))
