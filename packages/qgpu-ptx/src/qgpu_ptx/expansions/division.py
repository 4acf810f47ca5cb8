"""div and rem: by a constant a multiplication, by a variable a loop over quotient bits."""

from __future__ import annotations

from qgpu_ptx.divide_constant import divide_unsigned
from qgpu_ptx.expansions.arithmetic import absolute, check_count
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.instruction_context import InstructionContext
from qgpu_ptx.ir import WORD, ZERO, Imm, Value
from qgpu_ptx.ir_builder import IrBuilder
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

STRIDE = 4
"""Quotient bits that are skipped together where all are zero."""


@expansion("div", "rem")
def div_rem(c: InstructionContext, m: Modifiers) -> None:
    """Quotient rounded towards zero, and remainder; both are all ones for a zero divisor."""
    check_count(c, 3)
    type_ = SCALAR_TYPES[m["type"]]
    if type_.bits == 64:
        raise c.unsupported("64-bit division is not supported", "divide 32-bit integers")
    b = c.b
    wanted = c.node.opcode
    x, y = c.word(1, type_), c.word(2, type_)
    if isinstance(y, Imm) and y.value == 0:
        c.write(c.operands[0], type_, (Imm(WORD),))
        return
    if not type_.signed:
        result = divide_words(b, x, y, wanted)
    else:
        magnitude = divide_words(b, absolute(b, x), absolute(b, y), wanted)
        negative = b.compare("setlts", b.xor(x, y) if wanted == "div" else x, 0)
        result = b.select(negative, b.sub(ZERO, magnitude), magnitude)
    zero = b.compare("seteq", y, 0)
    # The unsigned quotient by 0 is all ones already.
    if wanted == "rem" or type_.signed or type_.bits < 32:
        result = b.select(zero, Imm(WORD), result)
    c.write(c.operands[0], type_, (result,))


def divide_words(b: IrBuilder, x: Value, y: Value, wanted: str) -> Value:
    """Quotient ("div") or remainder ("rem") of unsigned words; x / 0 is all ones, x % 0 is x."""
    if isinstance(y, Imm):
        quotient = divide_unsigned(b, x, y.value)
        return quotient if wanted == "div" else b.sub(x, b.op("mullo", quotient, y))
    return _divide_loop(b, x, y, wanted)


def _divide_loop(b: IrBuilder, x: Value, y: Value, wanted: str) -> Value:
    """Long division from the highest bit; groups of `STRIDE` zero bits take one step.

    Bit k of the quotient is set if rest >> k >= y, a test that cannot overflow. Lanes whose bits
    are zero skip blocks, so registers that they would leave behind the others are avoided: k is
    computed from `low`, which all lanes share, and a group's bits are gathered in `part`.
    """
    rest, low, quotient, part = (b.variable() for _ in range(4))
    group, next_group, done = (b.label(name) for name in ("group", "groups", "divided"))
    divides = wanted == "div"
    b.assign(rest, x)
    b.assign(low, Imm(32 - STRIDE))
    if divides:
        b.assign(quotient, ZERO)
    b.place(group)
    if divides:
        b.assign(part, ZERO)
    bits = b.label("bits")
    b.branch(b.compare("setltu", b.shr(rest, low), y), next_group, bits)
    b.place(bits)
    for bit in reversed(range(STRIDE)):
        k = b.add(low, bit)
        after = b.skip_unless(b.compare("setgeu", b.shr(rest, k), y))
        k = b.add(low, bit)
        b.assign(rest, b.sub(rest, b.shl(y, k)))
        if divides:
            b.assign(part, b.or_(part, 1 << bit))
        b.place(after)
    if divides:
        b.assign(quotient, b.or_(quotient, b.shl(part, low)))
    b.place(next_group)
    last = b.compare("seteq", low, 0)
    b.assign(low, b.sub(low, STRIDE))
    b.branch(last, done, group)
    b.place(done)
    return quotient if divides else rest
