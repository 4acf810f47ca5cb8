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


@instruction(opcode=6, slots=MEM, unit=LoadStore(load=True, exclusive=True, size=1))
def ldxb(a: int, b: int, flag: bool) -> int:
    """`ldx` of the word that holds the addressed byte."""
    return a


@instruction(opcode=7, slots=MEM, unit=LoadStore(load=True, exclusive=True, size=2))
def ldxh(a: int, b: int, flag: bool) -> int:
    """`ldx` of the word that holds the addressed 16 bits."""
    return a


@instruction(opcode=8, slots=MEM, unit=LoadStore(store=True, size=1))
def stb(a: int, b: int, flag: bool) -> int:
    """Stores bytes where 4 lanes make a word (see Memory); the result is 1 in all other lanes."""
    return b


@instruction(opcode=9, slots=MEM, unit=LoadStore(store=True, size=2))
def sth(a: int, b: int, flag: bool) -> int:
    """Stores halves where 2 lanes make a word (see Memory); the result is 1 in all other lanes."""
    return b
