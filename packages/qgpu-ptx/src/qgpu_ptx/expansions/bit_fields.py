"""Bit counts and fields: popc clz brev bfind bfe bfi bmsk szext."""

from __future__ import annotations

from qgpu_ptx.expansions.arithmetic import check_count, source
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.expansions.wide_words import shift_wide
from qgpu_ptx.instruction_context import InstructionContext, Words
from qgpu_ptx.ir import WORD, ZERO, Imm, Value
from qgpu_ptx.ir_builder import IrBuilder
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

U32 = SCALAR_TYPES["u32"]


def leading_zeros(b: IrBuilder, x: Words) -> Value:
    """Number of leading zeros; the width for 0."""
    high = b.op("clz", x[-1])
    if len(x) == 1:
        return high
    both = b.add(high, b.op("clz", x[0]))
    return b.select(b.compare("seteq", high, 32), both, high)


@expansion("popc", "clz", "brev")
def count(c: InstructionContext, m: Modifiers) -> None:
    """Ones, leading zeros, bits in reverse."""
    check_count(c, 2)
    type_ = SCALAR_TYPES[m["type"]]
    x = c.read(c.operands[1], type_)
    b = c.b
    match c.node.opcode:
        case "popc":
            ones = [b.op("popc", word) for word in x]
            c.write(c.operands[0], U32, (ones[0] if len(x) == 1 else b.add(*ones),))
        case "clz":
            c.write(c.operands[0], U32, (leading_zeros(b, x),))
        case _:
            c.write(c.operands[0], type_, tuple(b.op("brev", word) for word in reversed(x)))


@expansion("bfind")
def bfind(c: InstructionContext, m: Modifiers) -> None:
    """Position of the highest bit that differs from the sign; all ones if there is none."""
    check_count(c, 2)
    type_ = SCALAR_TYPES[m["type"]]
    b = c.b
    x = c.read(c.operands[1], type_)
    if type_.signed:
        sign = b.sar(x[-1], 31)
        x = tuple(b.xor(word, sign) for word in x)
    zeros = leading_zeros(b, x)
    if "amount" in m:
        none = b.compare("seteq", zeros, type_.bits)
        result = b.select(none, Imm(WORD), zeros)
    else:
        # Without a one, this is -1.
        result = b.sub(Imm(type_.bits - 1), zeros)
    c.write(c.operands[0], U32, (result,))


def shift_words(b: IrBuilder, name: str, x: Words, amount: Value) -> Words:
    """A shift of a value of either width."""
    if len(x) == 2:
        return shift_wide(b, name, x, amount)
    return (b.op(name, x[0], amount),)


def low_ones(b: IrBuilder, count: Value, words: int) -> Words:
    """A value whose lowest `count` bits are ones."""
    ones: Words = (Imm(WORD), Imm(WORD)) if words == 2 else (Imm(WORD),)
    return tuple(b.not_(w) for w in shift_words(b, "shl", ones, count))


@expansion("bfe")
def bfe(c: InstructionContext, m: Modifiers) -> None:
    """A bit field, extended by zero or by its highest bit."""
    check_count(c, 4)
    type_ = SCALAR_TYPES[m["type"]]
    b = c.b
    x = source(c, m, 1)
    position, length = (b.and_(c.word(i, U32), 0xFF) for i in (2, 3))
    moved = shift_words(b, "shr", x, position)
    mask = low_ones(b, length, len(x))
    field = tuple(b.and_(w, k) for w, k in zip(moved, mask, strict=True))
    if not type_.signed:
        c.write(c.operands[0], type_, field)
        return
    top = type_.bits - 1
    # The sign is bit min(position + length - 1, top); it fills what lies above the field.
    last = b.op("minu", b.sub(b.add(position, length), 1), top)
    at_top = shift_words(b, "shl", x, b.sub(Imm(top), last))
    sign = b.sar(at_top[-1], 31)
    room = b.op("maxs", b.sub(Imm(type_.bits), position), 0)
    real = b.op("minu", length, room)
    above = low_ones(b, real, len(x))
    empty = b.compare("seteq", length, 0)
    words = tuple(
        b.select(empty, ZERO, b.or_(f, b.and_(sign, b.not_(k))))
        for f, k in zip(field, above, strict=True)
    )
    c.write(c.operands[0], type_, words)


@expansion("bfi")
def bfi(c: InstructionContext, m: Modifiers) -> None:
    """b with a field replaced by the low bits of a."""
    check_count(c, 5)
    type_ = SCALAR_TYPES[m["type"]]
    b = c.b
    x, y = source(c, m, 1), source(c, m, 2)
    position, length = (b.and_(c.word(i, U32), 0xFF) for i in (3, 4))
    hole = shift_words(b, "shl", low_ones(b, length, len(x)), position)
    moved = shift_words(b, "shl", x, position)
    words = tuple(
        b.or_(b.and_(old, b.not_(h)), b.and_(new, h))
        for old, new, h in zip(y, moved, hole, strict=True)
    )
    c.write(c.operands[0], type_, words)


@expansion("bmsk")
def bmsk(c: InstructionContext, m: Modifiers) -> None:
    """`width` ones from bit `start`."""
    check_count(c, 3)
    b = c.b
    start, width = (_bounded(b, c.word(i, U32), m["mode"]) for i in (1, 2))
    c.write(c.operands[0], U32, (b.shl(low_ones(b, width, 1)[0], start),))


@expansion("szext")
def szext(c: InstructionContext, m: Modifiers) -> None:
    """The low `width` bits, extended by sign or zero."""
    check_count(c, 3)
    b = c.b
    x, width = c.word(1, U32), _bounded(b, c.word(2, U32), m["mode"])
    rest = b.sub(Imm(32), width)
    name = "sar" if m["type"] == "s32" else "shr"
    c.write(c.operands[0], U32, (b.op(name, b.shl(x, rest), rest),))


def _bounded(b: IrBuilder, amount: Value, mode: str) -> Value:
    return b.op("minu", amount, 32) if mode == "clamp" else b.and_(amount, 31)
