"""Arithmetic on 64-bit values as pairs of words, low word first."""

from __future__ import annotations

from qgpu_ptx.ir import WORD, ZERO, Imm, Value
from qgpu_ptx.ir_builder import Condition, IrBuilder

Pair = tuple[Value, Value]


def add_wide(b: IrBuilder, x: Pair, y: Pair) -> Pair:
    """x + y."""
    low = b.add(x[0], y[0])
    carry = b.flag("setltu", low, y[0])
    return low, b.add(b.add(x[1], y[1]), carry)


def sub_wide(b: IrBuilder, x: Pair, y: Pair) -> Pair:
    """x - y."""
    borrow = b.flag("setltu", x[0], y[0])
    return b.sub(x[0], y[0]), b.sub(b.sub(x[1], y[1]), borrow)


def negate_wide(b: IrBuilder, x: Pair) -> Pair:
    """-x."""
    return sub_wide(b, (ZERO, ZERO), x)


def multiply_wide(b: IrBuilder, x: Pair, y: Pair) -> Pair:
    """Lower 64 bits of x * y."""
    high = b.op("mulhiu", x[0], y[0])
    cross = b.add(b.op("mullo", x[0], y[1]), b.op("mullo", x[1], y[0]))
    return b.op("mullo", x[0], y[0]), b.add(high, cross)


def multiply_high_wide(b: IrBuilder, x: Pair, y: Pair) -> Pair:
    """Upper 64 bits of the unsigned product."""
    low_high = b.op("mulhiu", x[0], y[0])
    first = add_wide(b, (b.op("mullo", x[0], y[1]), b.op("mulhiu", x[0], y[1])), (low_high, ZERO))
    second = add_wide(b, (b.op("mullo", x[1], y[0]), b.op("mulhiu", x[1], y[0])), (first[0], ZERO))
    top = add_wide(b, (b.op("mullo", x[1], y[1]), b.op("mulhiu", x[1], y[1])), (first[1], ZERO))
    return add_wide(b, top, (second[1], ZERO))


def shift_wide(b: IrBuilder, name: str, x: Pair, amount: Value) -> Pair:
    """x shifted by `amount` (shl, shr or sar); amounts of 64 or more as PTX has them."""
    if isinstance(amount, Imm):
        return _shift_known(b, name, x, amount.value)
    # Machine shifts by 32 or more give 0 (or the sign), which covers amounts on either side.
    if name == "shl":
        return _shift_left(b, x, amount)
    over = b.sub(amount, 32)
    spill = b.shl(x[1], b.sub(Imm(32), amount))
    near = b.or_(b.shr(x[0], amount), spill)
    is_long = b.compare("setgeu", amount, 32)
    far = b.op(name, x[1], over)
    return b.select(is_long, far, near), b.op(name, x[1], amount)


def _shift_left(b: IrBuilder, x: Pair, amount: Value) -> Pair:
    spill = b.shr(x[0], b.sub(Imm(32), amount))
    near = b.or_(b.shl(x[1], amount), spill)
    far = b.shl(x[0], b.sub(amount, 32))
    is_long = b.compare("setgeu", amount, 32)
    return b.shl(x[0], amount), b.select(is_long, far, near)


def _shift_known(b: IrBuilder, name: str, x: Pair, n: int) -> Pair:
    if n == 0:
        return x
    if name == "shl":
        if n >= 32:
            return ZERO, b.shl(x[0], n - 32)
        return b.shl(x[0], n), b.or_(b.shl(x[1], n), b.shr(x[0], 32 - n))
    if n >= 32:
        return b.op(name, x[1], n - 32), b.op(name, x[1], min(n, WORD))
    return b.or_(b.shr(x[0], n), b.shl(x[1], 32 - n)), b.op(name, x[1], n)


def less_wide(b: IrBuilder, x: Pair, y: Pair, *, signed: bool) -> Condition:
    """x < y."""
    low = b.flag("setltu", x[0], y[0])
    high = b.flag("setlts" if signed else "setltu", x[1], y[1])
    return b.nonzero(b.select(b.compare("seteq", x[1], y[1]), low, high))


def equal_wide(b: IrBuilder, x: Pair, y: Pair) -> Condition:
    """x == y."""
    difference = b.or_(b.xor(x[0], y[0]), b.xor(x[1], y[1]))
    return b.compare("seteq", difference, 0)


def select_wide(b: IrBuilder, condition: Condition, x: Pair, y: Pair) -> Pair:
    """x where the condition holds, y elsewhere."""
    return b.select(condition, x[0], y[0]), b.select(condition, x[1], y[1])
