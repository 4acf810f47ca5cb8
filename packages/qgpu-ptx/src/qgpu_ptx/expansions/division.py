"""div and rem: by a constant a multiplication, by a variable a search with its reciprocal."""

from __future__ import annotations

from qgpu_ptx.divide_constant import divide_unsigned
from qgpu_ptx.expansions.arithmetic import absolute, check_count
from qgpu_ptx.expansions.reciprocal import divide_by_reciprocal
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.expansions.short_division import divide_by_polynomial
from qgpu_ptx.instruction_context import InstructionContext
from qgpu_ptx.ir import WORD, ZERO, Imm
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

ROOM_FOR_TABLE = 64
"""Blocks of a machine that divides with a table of reciprocals, which takes a third more."""


@expansion("div", "rem")
def div_rem(c: InstructionContext, m: Modifiers) -> None:
    """Quotient rounded towards zero, and remainder; both are all ones for a zero divisor."""
    check_count(c, 3)
    type_ = SCALAR_TYPES[m["type"]]
    if type_.bits == 64:
        raise c.unsupported("64-bit division is not supported", "divide 32-bit integers")
    b = c.b
    divides = c.node.opcode == "div"
    x, y = c.word(1, type_), c.word(2, type_)
    if isinstance(y, Imm) and y.value == 0:
        c.write(c.operands[0], type_, (Imm(WORD),))
        return
    size_x, size_y = (absolute(b, v) if type_.signed else v for v in (x, y))
    if isinstance(size_y, Imm):
        quotient = divide_unsigned(b, size_x, size_y.value)
        size = quotient if divides else b.sub(size_x, b.op("mullo", quotient, size_y))
    else:
        both = c.kernel.divisions.find(b, (x, y, type_.signed))
        if both is None:
            if c.kernel.config.rom_blocks < ROOM_FOR_TABLE:
                both = divide_by_polynomial(b, size_x, size_y)
            else:
                both = divide_by_reciprocal(c.kernel, size_x, size_y)
            c.kernel.divisions.keep(b, (x, y, type_.signed), both)
        size = both[0] if divides else both[1]
    if not type_.signed:
        c.write(c.operands[0], type_, (size,))
        return
    negative = b.compare("setlts", b.xor(x, y) if divides else x, 0)
    result = b.select(negative, b.sub(ZERO, size), size)
    zero = b.compare("seteq", y, 0)
    c.write(c.operands[0], type_, (b.select(zero, Imm(WORD), result),))
