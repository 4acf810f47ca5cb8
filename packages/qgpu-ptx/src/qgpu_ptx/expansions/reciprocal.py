"""Division of unsigned words by a variable.

A table in memory holds reciprocals of the numbers that the leading bits of a divisor make. They
are at most as large as they should be, so that a product with one gives the leading bits of the
quotient, never too much. One round is enough for small divisors and for small quotients; lanes
leave when what is left is less than the divisor. All words on the way are small where the operands
are, and a table takes no row to send back, unlike a polynomial.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qgpu_isa.machine_config import WORD_BITS, MachineConfig

from qgpu_ptx.expansions.known_divisions import Division
from qgpu_ptx.ir import WORD, Imm, Value

if TYPE_CHECKING:
    from qgpu_ptx.ast_to_ir import KernelLowering

NAME = "reciprocals"
MEMORY_SHARE = 16
"""The table takes at most one of so many words of global memory."""
MAX_ENTRIES = 64


def divide_by_reciprocal(kernel: KernelLowering, x: Value, y: Value) -> Division:
    """x / y and x % y; both are all ones for y = 0."""
    b = kernel.builder
    entries = table_entries(kernel.config)
    table = kernel.variables.constants(NAME, reciprocals(entries))
    quotient, rest = b.variable(), b.variable()
    nonzero, zero, correct, again, done = (
        b.label(name) for name in ("divide", "zero", "correct", "digit", "divided")
    )
    # The divisor is `lead` * 2**shift and something below; small ones are their own lead.
    shift = b.sub(Imm(WORD_BITS - (entries - 1).bit_length()), b.op("clz", b.or_(y, entries - 1)))
    lead = b.shr(y, shift)
    b.branch(b.compare("seteq", y, 0), zero, nonzero)
    b.place(zero)
    b.assign(quotient, Imm(WORD))
    b.assign(rest, Imm(WORD))
    b.jump(done)

    def digit(value: Value) -> Value:
        reciprocal = b.load(b.add(b.shl(lead, 2), table), space="const")
        return b.shr(b.op("mulhiu", value, reciprocal), shift)

    b.place(nonzero)
    first = digit(x)
    b.assign(quotient, first)
    b.assign(rest, b.sub(x, b.op("mullo", first, y)))
    b.place(correct)
    # One more where there is room: a quarter of all quotients are too small by one.
    b.assign(quotient, b.add(quotient, b.flag("setltu", b.sub(y, 1), rest)))
    b.assign(rest, b.op("minu", rest, b.sub(rest, y)))
    b.branch(b.compare("setgeu", rest, y), again, done)
    b.place(again)
    more = digit(rest)
    b.assign(quotient, b.add(quotient, more))
    b.assign(rest, b.sub(rest, b.op("mullo", more, y)))
    b.jump(correct)
    b.place(done)
    return quotient, rest


def table_entries(config: MachineConfig) -> int:
    """A power of two."""
    return min(MAX_ENTRIES, 1 << (config.global_words // MEMORY_SHARE).bit_length() - 1)


def reciprocals(entries: int) -> tuple[int, ...]:
    """At most 2**32 / n for n in the lower half; for others, of all that begins with them."""
    half = entries // 2
    whole = 1 << WORD_BITS
    return tuple(min(WORD, whole // (n + (n >= half)) if n else 0) for n in range(entries))
