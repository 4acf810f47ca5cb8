"""Division of unsigned words by a variable in few blocks, for machines whose program is short.

The reciprocal is taken from a polynomial and somewhat too small, so that a product with it gives
the leading bits of the quotient, never too much; rounds with what is left give the rest. Words
that a round leaves behind are small where the operands are, and lanes leave when they are done.
"""

from __future__ import annotations

from qgpu_ptx.expansions.known_divisions import Division
from qgpu_ptx.ir import ZERO, Imm, Value
from qgpu_ptx.ir_builder import IrBuilder

# 2 * (C0 + C1*e + e**2) is below 1 / (1 - e) for 0 <= e <= 1/2, by at most a 29th of it. Numbers
# below 1 are held as words, in units of 2**-32. A polynomial of higher degree would save rounds for
# large quotients, but cost a row of large numbers for small ones too.
C0 = int(0.48343 * 2**32)
C1 = int(0.46629 * 2**32)


def divide_by_polynomial(b: IrBuilder, x: Value, y: Value) -> Division:
    """x / y and x % y; both are all ones for y = 0."""
    part = _reciprocal(b, y)
    zero = b.sub(ZERO, b.flag("seteq", y, 0))
    quotient, rest = b.variable(), b.variable()
    digit = b.or_(b.op("mulhiu", x, part), zero)
    b.assign(quotient, digit)
    b.assign(rest, b.sub(b.or_(x, zero), b.op("mullo", digit, y)))

    again, take, near, step, done = (
        b.label(name) for name in ("digits", "digit", "near", "step", "divided")
    )
    b.place(again)
    digit = b.op("mulhiu", rest, part)
    b.branch(b.compare("seteq", digit, 0), near, take)
    b.place(take)
    b.assign(rest, b.sub(rest, b.op("mullo", digit, y)))
    b.assign(quotient, b.add(quotient, digit))
    b.jump(again)
    # What is left is less than a few times y. It ends at once for y = 0.
    b.place(near)
    b.branch(b.compare("setgeu", b.sub(y, 1), rest), done, step)
    b.place(step)
    b.assign(rest, b.sub(rest, y))
    b.assign(quotient, b.add(quotient, 1))
    b.jump(near)
    b.place(done)
    return quotient, rest


def _reciprocal(b: IrBuilder, y: Value) -> Value:
    """At most 2**32 / y, and not much less; 0 for y = 0."""
    zeros = b.op("clz", y)
    # y is 2**(32 - zeros) * (1 - e).
    e = b.sub(ZERO, b.shl(y, zeros))
    half = b.add(b.op("mulhiu", e, b.add(e, C1)), C0)
    return b.shr(half, b.sub(Imm(31), zeros))
