"""Bitwise logic and selection."""

from __future__ import annotations

from qgpu_isa.instruction import ALU_SLOTS, LATER_ALU_SLOTS, Slot, instruction
from qgpu_isa.units import Alu


@instruction(opcode=10, slots=ALU_SLOTS, unit=Alu(result="and"))
def and_(a: int, b: int, flag: bool) -> int:
    """Bitwise a AND b."""
    return a & b


@instruction(opcode=11, slots=ALU_SLOTS, unit=Alu(result="or"))
def or_(a: int, b: int, flag: bool) -> int:
    """Bitwise a OR b."""
    return a | b


@instruction(opcode=12, slots=ALU_SLOTS, unit=Alu(result="xor"))
def xor(a: int, b: int, flag: bool) -> int:
    """Bitwise a XOR b."""
    return a ^ b


@instruction(opcode=13, slots=LATER_ALU_SLOTS, unit=Alu(result="choose", flag="pred"))
def sel(a: int, b: int, flag: bool) -> int:
    """a where the slot's predicate operand holds, b elsewhere."""
    return a if flag else b


@instruction(opcode=14, slots=(Slot.A2,), unit=Alu(result="choose", flag="forward"))
def selfwd(a: int, b: int, flag: bool) -> int:
    """a where the comparison in slot A1 of the same block holds, b elsewhere."""
    return a if flag else b
