"""Comparisons: the result is 1 where they hold and 0 elsewhere."""

from __future__ import annotations

from qgpu_isa.instruction import LATER_ALU_SLOTS, instruction
from qgpu_isa.units import Alu
from qgpu_isa.words import signed


@instruction(opcode=16, slots=LATER_ALU_SLOTS, unit=Alu(result="flag", subtract=True, flag="eq"))
def seteq(a: int, b: int, flag: bool) -> int:
    """1 where a equals b."""
    return int(a == b)


@instruction(
    opcode=17, slots=LATER_ALU_SLOTS, unit=Alu(result="flag", subtract=True, flag="eq", negate=True)
)
def setne(a: int, b: int, flag: bool) -> int:
    """1 where a differs from b."""
    return int(a != b)


@instruction(opcode=18, slots=LATER_ALU_SLOTS, unit=Alu(result="flag", subtract=True, flag="lts"))
def setlts(a: int, b: int, flag: bool) -> int:
    """1 where a < b as signed numbers."""
    return int(signed(a) < signed(b))


@instruction(
    opcode=19,
    slots=LATER_ALU_SLOTS,
    unit=Alu(result="flag", subtract=True, flag="lts", negate=True),
)
def setges(a: int, b: int, flag: bool) -> int:
    """1 where a >= b as signed numbers."""
    return int(signed(a) >= signed(b))


@instruction(opcode=20, slots=LATER_ALU_SLOTS, unit=Alu(result="flag", subtract=True, flag="ltu"))
def setltu(a: int, b: int, flag: bool) -> int:
    """1 where a < b as unsigned numbers."""
    return int(a < b)


@instruction(
    opcode=21,
    slots=LATER_ALU_SLOTS,
    unit=Alu(result="flag", subtract=True, flag="ltu", negate=True),
)
def setgeu(a: int, b: int, flag: bool) -> int:
    """1 where a >= b as unsigned numbers."""
    return int(a >= b)


@instruction(opcode=22, slots=LATER_ALU_SLOTS, unit=Alu(result="flag", flag="pred"))
def setp(a: int, b: int, flag: bool) -> int:
    """1 where the slot's predicate operand holds."""
    return int(flag)
