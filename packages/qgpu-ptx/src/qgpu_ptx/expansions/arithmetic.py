"""Integer arithmetic: add sub mul mad mul24 mad24 sad abs neg min max dp4a dp2a."""

from __future__ import annotations

from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.expansions.wide_words import (
    add_wide,
    less_wide,
    multiply_high_wide,
    multiply_wide,
    negate_wide,
    select_wide,
    sub_wide,
)
from qgpu_ptx.instruction_context import InstructionContext, Words
from qgpu_ptx.ir import ZERO, Imm, Value
from qgpu_ptx.ir_builder import IrBuilder
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES, ScalarType, wide

B32 = SCALAR_TYPES["b32"]


def source(c: InstructionContext, m: Modifiers, position: int) -> Words:
    """A source operand of the instruction's type."""
    return c.read(c.operands[position], SCALAR_TYPES[m["type"]])


def check_count(c: InstructionContext, count: int) -> None:
    """Checks the number of operands. Raises OperandError."""
    if len(c.operands) != count:
        raise c.error(f"takes {count} operands, {len(c.operands)} given")


def plus(b: IrBuilder, x: Words, y: Words) -> Words:
    """Sum of two values of one width."""
    if len(x) == 2:
        assert len(y) == 2
        return add_wide(b, x, y)
    return (b.add(x[0], y[0]),)


def minus(b: IrBuilder, x: Words, y: Words) -> Words:
    """Difference of two values of one width."""
    if len(x) == 2:
        assert len(y) == 2
        return sub_wide(b, x, y)
    return (b.sub(x[0], y[0]),)


def saturate_sum(b: IrBuilder, x: Value, y: Value, total: Value, *, subtract: bool) -> Value:
    """The sum (or difference) of s32 values clamped to s32, given its wrapped value."""
    # It overflowed if the result's sign is wrong for the operands' signs.
    against = b.xor(x, y) if subtract else b.xor(x, total)
    with_total = b.xor(x, total) if subtract else b.xor(y, total)
    overflowed = b.compare("setlts", b.and_(against, with_total), 0)
    limit = b.xor(b.sar(x, 31), 0x7FFFFFFF)
    return b.select(overflowed, limit, total)


@expansion("add", "sub")
def add_sub(c: InstructionContext, m: Modifiers) -> None:
    """Sum and difference; `.sat` clamps; `.cc` sets the carry flag."""
    from qgpu_ptx.expansions.carry_chains import chain

    check_count(c, 3)
    if "cc" in m:
        chain(c, m)
        return
    type_ = SCALAR_TYPES[m["type"]]
    x, y = source(c, m, 1), source(c, m, 2)
    subtract = c.node.opcode == "sub"
    total = minus(c.b, x, y) if subtract else plus(c.b, x, y)
    if "sat" in m:
        total = (saturate_sum(c.b, x[0], y[0], total[0], subtract=subtract),)
    c.write(c.operands[0], type_, total)


def product(b: IrBuilder, part: str, type_: ScalarType, x: Words, y: Words) -> Words:
    """The low or high half, or the whole (`wide`), of a product."""
    if type_.bits == 64:
        assert len(x) == len(y) == 2
        return multiply_wide(b, x, y) if part == "lo" else _high_wide(b, type_, x, y)
    if type_.bits == 16:
        # Both factors are extended to words, so the low word is the whole product.
        whole = b.op("mullo", x[0], y[0])
        if part == "hi":
            return (b.op("sar" if type_.signed else "shr", whole, Imm(16)),)
        return (whole,)
    high = "mulhis" if type_.signed else "mulhiu"
    if part == "lo":
        return (b.op("mullo", x[0], y[0]),)
    if part == "hi":
        return (b.op(high, x[0], y[0]),)
    return b.op("mullo", x[0], y[0]), b.op(high, x[0], y[0])


def _high_wide(b: IrBuilder, type_: ScalarType, x: Words, y: Words) -> Words:
    assert len(x) == len(y) == 2
    high = multiply_high_wide(b, x, y)
    if not type_.signed:
        return high
    # A negative factor counts 2**64 too much of the other.
    for p, q in ((x, y), (y, x)):
        sign = b.sar(p[1], 31)
        high = sub_wide(b, high, (b.and_(sign, q[0]), b.and_(sign, q[1])))
    return high


@expansion("mul")
def mul(c: InstructionContext, m: Modifiers) -> None:
    """Low half, high half or whole of the product."""
    check_count(c, 3)
    type_ = SCALAR_TYPES[m["type"]]
    result = product(c.b, m["part"], type_, source(c, m, 1), source(c, m, 2))
    c.write(c.operands[0], wide(type_) if m["part"] == "wide" else type_, result)


@expansion("mad")
def mad(c: InstructionContext, m: Modifiers) -> None:
    """A product plus c."""
    from qgpu_ptx.expansions.carry_chains import chain

    check_count(c, 4)
    if "cc" in m:
        chain(c, m)
        return
    type_ = SCALAR_TYPES[m["type"]]
    result = wide(type_) if m["part"] == "wide" else type_
    half = product(c.b, m["part"], type_, source(c, m, 1), source(c, m, 2))
    addend = c.read(c.operands[3], result)
    total = plus(c.b, half, addend)
    if "sat" in m:
        total = (saturate_sum(c.b, half[0], addend[0], total[0], subtract=False),)
    c.write(c.operands[0], result, total)


@expansion("mul24", "mad24")
def mul24(c: InstructionContext, m: Modifiers) -> None:
    """Product of the low 24 bits: its low word, or its bits 47..16."""
    type_ = SCALAR_TYPES[m["type"]]
    check_count(c, 3 if c.node.opcode == "mul24" else 4)
    factors = []
    for position in (1, 2):
        value = source(c, m, position)[0]
        factors.append(c.sign_extend(value, 24) if type_.signed else c.b.and_(value, 0xFFFFFF))
    result = c.b.op("mullo", *factors)
    if m["part"] == "hi":
        high = c.b.op("mulhis" if type_.signed else "mulhiu", *factors)
        result = c.b.or_(c.b.shr(result, 16), c.b.shl(high, 16))
    if c.node.opcode == "mad24":
        addend = source(c, m, 3)[0]
        total = c.b.add(result, addend)
        if "sat" in m:
            total = saturate_sum(c.b, result, addend, total, subtract=False)
        result = total
    c.write(c.operands[0], type_, (result,))


def absolute(b: IrBuilder, x: Value) -> Value:
    """|x| as an unsigned word."""
    return b.op("maxs", x, b.sub(ZERO, x)) if not isinstance(x, Imm) else _absolute_known(x)


def _absolute_known(x: Imm) -> Imm:
    return Imm(-x.value & 0xFFFFFFFF) if x.value >> 31 else x


@expansion("abs", "neg")
def abs_neg(c: InstructionContext, m: Modifiers) -> None:
    """Absolute value and negation; the least integer is its own."""
    check_count(c, 2)
    type_ = SCALAR_TYPES[m["type"]]
    x = source(c, m, 1)
    result: Words
    if len(x) == 2:
        negative = negate_wide(c.b, x)
        keep = c.node.opcode == "abs" and c.b.compare("setges", x[1], 0)
        result = select_wide(c.b, keep, x, negative)
    elif c.node.opcode == "neg":
        result = (c.b.sub(ZERO, x[0]),)
    else:
        # maxs(x, -x): for the least integer both are the same.
        result = (absolute(c.b, x[0]),)
    c.write(c.operands[0], type_, result)


@expansion("min", "max")
def min_max(c: InstructionContext, m: Modifiers) -> None:
    """The smaller or larger value."""
    check_count(c, 3)
    type_ = SCALAR_TYPES[m["type"]]
    x, y = source(c, m, 1), source(c, m, 2)
    if len(x) == 2:
        assert len(y) == 2
        less = less_wide(c.b, x, y, signed=type_.signed)
        smaller = c.node.opcode == "min"
        result: Words = select_wide(c.b, less, x if smaller else y, y if smaller else x)
    else:
        result = (c.b.op(c.node.opcode + ("s" if type_.signed else "u"), x[0], y[0]),)
    c.write(c.operands[0], type_, result)


@expansion("sad")
def sad(c: InstructionContext, m: Modifiers) -> None:
    """c + |a - b|."""
    check_count(c, 4)
    type_ = SCALAR_TYPES[m["type"]]
    x, y, z = (source(c, m, position) for position in (1, 2, 3))
    difference: Words
    if len(x) == 2:
        assert len(y) == 2
        less = less_wide(c.b, x, y, signed=type_.signed)
        difference = select_wide(c.b, less, sub_wide(c.b, y, x), sub_wide(c.b, x, y))
    else:
        kind = "s" if type_.signed else "u"
        larger, smaller = (c.b.op(f"{name}{kind}", x[0], y[0]) for name in ("max", "min"))
        difference = (c.b.sub(larger, smaller),)
    c.write(c.operands[0], type_, plus(c.b, difference, z))


@expansion("dp4a", "dp2a")
def dot_product(c: InstructionContext, m: Modifiers) -> None:
    """c plus the dot product of four bytes, or of two half-words and two bytes."""
    check_count(c, 4)
    x, y = c.word(1, B32), c.word(2, B32)
    total = c.word(3, B32)
    wide_part = 8 if c.node.opcode == "dp4a" else 16
    start = 16 if m.get("half") == "hi" else 0
    for index in range(32 // wide_part):
        left = _field(c, x, wide_part * index, wide_part, m["at"][0] == "s")
        right = _field(c, y, start + 8 * index, 8, m["bt"][0] == "s")
        total = c.b.add(total, c.b.op("mullo", left, right))
    c.write(c.operands[0], B32, (total,))


def _field(c: InstructionContext, x: Value, low: int, bits: int, signed: bool) -> Value:
    moved = c.b.shl(x, 32 - low - bits)
    return c.b.op("sar" if signed else "shr", moved, Imm(32 - bits))
