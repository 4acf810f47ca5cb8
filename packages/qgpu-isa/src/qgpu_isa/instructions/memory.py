"""Loads and stores of 32-bit words. The address is the result of slot A0, in bytes.

Smaller values are loaded with the word that holds them; `extb` and the like, in slot A1 of the same
block, take them out of it by the same address.
"""

from __future__ import annotations

from qgpu_isa.instruction import Slot, instruction
from qgpu_isa.units import LoadStore

MEM = (Slot.MEM,)


@instruction(opcode=1, slots=MEM, unit=LoadStore(load=True))
def ld(a: int, b: int, flag: bool) -> int:
    """Loads the addressed word (a is the word that memory holds)."""
    return a


@instruction(opcode=2, slots=MEM, unit=LoadStore(store=True))
def st(a: int, b: int, flag: bool) -> int:
    """Stores the data operand; of lanes with one address the lowest writes, all advance."""
    return b


@instruction(opcode=3, slots=MEM, unit=LoadStore(load=True, exclusive=True))
def ldx(a: int, b: int, flag: bool) -> int:
    """Loads the addressed word for one lane per word; the other lanes run the block again."""
    return a


@instruction(opcode=4, slots=MEM, unit=LoadStore(load=True, size=1))
def ldb(a: int, b: int, flag: bool) -> int:
    """Loads the word that holds the addressed byte."""
    return a


@instruction(opcode=5, slots=MEM, unit=LoadStore(load=True, size=2))
def ldh(a: int, b: int, flag: bool) -> int:
    """Loads the word that holds the addressed 16 bits."""
    return a
