"""Counting, reversing and picking bits of a word."""

from __future__ import annotations

from qgpu_isa.instruction import Slot, instruction
from qgpu_isa.units import Alu
from qgpu_isa.words import extended

# A1 stands beside the multiplier and has time; A2 is on the longest path.
A1 = (Slot.A1,)


@instruction(opcode=23, slots=A1, unit=Alu(result="ones"))
def popc(a: int, b: int, flag: bool) -> int:
    """Number of ones in a."""
    return a.bit_count()


@instruction(opcode=24, slots=A1, unit=Alu(result="leading"))
def clz(a: int, b: int, flag: bool) -> int:
    """Number of zeros in front of the highest one of a; 32 for 0."""
    return 32 - a.bit_length()


@instruction(opcode=25, slots=A1, unit=Alu(result="reverse"))
def brev(a: int, b: int, flag: bool) -> int:
    """The bits of a in reverse order."""
    return int(f"{a:032b}"[::-1], 2)


@instruction(opcode=26, slots=A1, unit=Alu(result="byte"))
def extb(a: int, b: int, flag: bool) -> int:
    """The byte of a at byte address b (modulo 4), zeros in front."""
    return a >> 8 * (b & 3) & 0xFF


@instruction(opcode=27, slots=A1, unit=Alu(result="byte", extend=True))
def extbs(a: int, b: int, flag: bool) -> int:
    """The byte of a at byte address b (modulo 4), its sign in front."""
    return extended(a >> 8 * (b & 3), 8)


@instruction(opcode=28, slots=A1, unit=Alu(result="half"))
def exth(a: int, b: int, flag: bool) -> int:
    """The half of a at byte address b (0 or 2, modulo 4), zeros in front."""
    return a >> 8 * (b & 2) & 0xFFFF


@instruction(opcode=29, slots=A1, unit=Alu(result="half", extend=True))
def exths(a: int, b: int, flag: bool) -> int:
    """The half of a at byte address b (0 or 2, modulo 4), its sign in front."""
    return extended(a >> 8 * (b & 2), 16)


@instruction(opcode=30, slots=A1, unit=Alu(result="trailing"))
def ctz(a: int, b: int, flag: bool) -> int:
    """Number of zeros behind the lowest one of a; 32 for 0."""
    return (a & -a).bit_length() - 1 if a else 32


@instruction(opcode=31, slots=A1, unit=Alu(result="clear_byte"))
def clrb(a: int, b: int, flag: bool) -> int:
    """a with the byte at byte address b (modulo 4) cleared."""
    return a & ~(0xFF << 8 * (b & 3))


@instruction(opcode=15, slots=A1, unit=Alu(result="ballot", flag="pred"))
def ballot(a: int, b: int, flag: bool) -> int:
    """In every lane: bit i is 1 where lane i executes the block and its predicate operand holds."""
    return int(flag)
