"""Logic and shifts: and or xor not cnot lop3 shl shr shf."""

from __future__ import annotations

from qgpu_ptx.expansions.arithmetic import check_count
from qgpu_ptx.expansions.comparison import combine
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.expansions.wide_words import shift_wide
from qgpu_ptx.instruction_context import InstructionContext
from qgpu_ptx.ir import WORD, ZERO, Imm, Value
from qgpu_ptx.ir_builder import IrBuilder
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

B32 = SCALAR_TYPES["b32"]
U32 = SCALAR_TYPES["u32"]


@expansion("and", "or", "xor")
def binary(c: InstructionContext, m: Modifiers) -> None:
    """Bitwise operations on words, and boolean ones on predicates."""
    check_count(c, 3)
    if m["type"] == "pred":
        p, q = (c.condition(operand) for operand in c.operands[1:])
        c.write_condition(c.operands[0], combine(c.b, c.node.opcode, p, q))
        return
    type_ = SCALAR_TYPES[m["type"]]
    x, y = (c.read(operand, type_) for operand in c.operands[1:])
    words = tuple(c.b.op(c.node.opcode, p, q) for p, q in zip(x, y, strict=True))
    c.write(c.operands[0], type_, words)


@expansion("not", "cnot")
def complement(c: InstructionContext, m: Modifiers) -> None:
    """Bitwise complement, and whether a value is zero."""
    check_count(c, 2)
    if m["type"] == "pred":
        c.write_condition(c.operands[0], c.b.invert(c.condition(c.operands[1])))
        return
    type_ = SCALAR_TYPES[m["type"]]
    x = c.read(c.operands[1], type_)
    if c.node.opcode == "not":
        c.write(c.operands[0], type_, tuple(c.b.not_(word) for word in x))
        return
    any_ = x[0] if len(x) == 1 else c.b.or_(x[0], x[1])
    flag = c.b.flag("seteq", any_, 0)
    c.write(c.operands[0], type_, (flag, ZERO)[: len(x)])


@expansion("lop3")
def lop3(c: InstructionContext, m: Modifiers) -> None:
    """Any function of three bits, as a tree of selections by a, then b."""
    check_count(c, 5)
    x, y, z = (c.word(position, B32) for position in (1, 2, 3))
    table = c.word(4, U32)
    if not isinstance(table, Imm):
        raise c.unsupported("the table must be a constant")
    halves = [_function_of_two(c.b, table.value >> 4 * i & 15, y, z) for i in (0, 1)]
    c.write(c.operands[0], B32, (_choose_bits(c.b, x, halves[1], halves[0]),))


def _function_of_two(b: IrBuilder, table: int, y: Value, z: Value) -> Value:
    """Bit (y << 1 | z) of a table of four."""
    match table:
        case 0b1000:
            return b.and_(y, z)
        case 0b1110:
            return b.or_(y, z)
        case 0b0110:
            return b.xor(y, z)
        case 0b0111 | 0b0001 | 0b1001:
            return b.not_(_function_of_two(b, table ^ 15, y, z))
    parts = [_function_of_one(b, table >> 2 * i & 3, z) for i in (0, 1)]
    return _choose_bits(b, y, parts[1], parts[0])


def _function_of_one(b: IrBuilder, table: int, z: Value) -> Value:
    return (ZERO, b.not_(z), z, Imm(WORD))[table]


def _choose_bits(b: IrBuilder, x: Value, ones: Value, zeros: Value) -> Value:
    """Bits of `ones` where x has a one, of `zeros` elsewhere."""
    if ones == zeros:
        return ones
    if zeros == ZERO:
        return b.and_(x, ones)
    if ones == ZERO:
        return b.and_(b.not_(x), zeros)
    if ones == Imm(WORD):
        return b.or_(x, zeros)
    if zeros == Imm(WORD):
        return b.or_(b.not_(x), ones)
    return b.xor(zeros, b.and_(x, b.xor(ones, zeros)))


@expansion("shl", "shr")
def shift(c: InstructionContext, m: Modifiers) -> None:
    """Shifts; an amount of the width or more gives 0, or the sign."""
    check_count(c, 3)
    type_ = SCALAR_TYPES[m["type"]]
    x, amount = c.read(c.operands[1], type_), c.word(2, U32)
    name = "shl" if c.node.opcode == "shl" else "sar" if type_.signed else "shr"
    if len(x) == 2:
        c.write(c.operands[0], type_, shift_wide(c.b, name, x, amount))
    else:
        # A half-word is extended to a word, so shifts by 16 to 31 come out right too.
        c.write(c.operands[0], type_, (c.b.op(name, x[0], amount),))


@expansion("shf")
def funnel_shift(c: InstructionContext, m: Modifiers) -> None:
    """The high word of b:a shifted left, or the low word shifted right."""
    check_count(c, 4)
    low, high, amount = (c.word(position, B32) for position in (1, 2, 3))
    amount = c.b.op("minu", amount, 32) if m["mode"] == "clamp" else c.b.and_(amount, 31)
    rest = c.b.sub(Imm(32), amount)
    left = m["dir"] == "l"
    first = c.b.shl(high, amount if left else rest)
    second = c.b.shr(low, rest if left else amount)
    c.write(c.operands[0], B32, (c.b.or_(first, second),))
