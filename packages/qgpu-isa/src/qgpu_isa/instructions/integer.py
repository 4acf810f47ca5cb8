"""Addition, subtraction, minimum and maximum."""

from __future__ import annotations

from qgpu_isa.instruction import ALU_SLOTS, Slot, instruction
from qgpu_isa.units import Alu
from qgpu_isa.words import signed, wrap


@instruction(opcode=1, slots=ALU_SLOTS, unit=Alu(result="sum"))
def add(a: int, b: int, flag: bool) -> int:
    """a + b, modulo 2**32."""
    return wrap(a + b)


@instruction(opcode=2, slots=ALU_SLOTS, unit=Alu(result="sum", subtract=True))
def sub(a: int, b: int, flag: bool) -> int:
    """a - b, modulo 2**32."""
    return wrap(a - b)


@instruction(opcode=3, slots=(Slot.A0,), unit=Alu(result="sum", shift_a=1))
def lea1(a: int, b: int, flag: bool) -> int:
    """2 * a + b, modulo 2**32: the address of a 16-bit element."""
    return wrap((a << 1) + b)


@instruction(opcode=4, slots=(Slot.A0,), unit=Alu(result="sum", shift_a=2))
def lea2(a: int, b: int, flag: bool) -> int:
    """4 * a + b, modulo 2**32: the address of a word."""
    return wrap((a << 2) + b)


@instruction(opcode=5, slots=(Slot.A0,), unit=Alu(result="sum", shift_a=3))
def lea3(a: int, b: int, flag: bool) -> int:
    """8 * a + b, modulo 2**32: the address of a 64-bit element."""
    return wrap((a << 3) + b)


@instruction(opcode=6, slots=(Slot.A1,), unit=Alu(result="choose", subtract=True, flag="lts"))
def mins(a: int, b: int, flag: bool) -> int:
    """The smaller of a and b as signed numbers."""
    return a if signed(a) < signed(b) else b


@instruction(
    opcode=7, slots=(Slot.A1,), unit=Alu(result="choose", subtract=True, flag="lts", negate=True)
)
def maxs(a: int, b: int, flag: bool) -> int:
    """The larger of a and b as signed numbers."""
    return b if signed(a) < signed(b) else a


@instruction(opcode=8, slots=(Slot.A1,), unit=Alu(result="choose", subtract=True, flag="ltu"))
def minu(a: int, b: int, flag: bool) -> int:
    """The smaller of a and b as unsigned numbers."""
    return min(a, b)


@instruction(
    opcode=9, slots=(Slot.A1,), unit=Alu(result="choose", subtract=True, flag="ltu", negate=True)
)
def maxu(a: int, b: int, flag: bool) -> int:
    """The larger of a and b as unsigned numbers."""
    return max(a, b)
