"""atom and red: an exclusive load, the new value, and a store, as one atomic step."""

from __future__ import annotations

from qgpu_ptx.expansions.arithmetic import check_count
from qgpu_ptx.expansions.combined_atomic import combine_lanes, combined_form
from qgpu_ptx.expansions.memory import space_of
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.expansions.wide_words import (
    Pair,
    add_wide,
    equal_wide,
    less_wide,
    select_wide,
)
from qgpu_ptx.instruction_context import InstructionContext, Words
from qgpu_ptx.ir import ZERO, Imm, Reg, Value
from qgpu_ptx.ir_builder import IrBuilder
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES, ScalarType


@expansion("atom", "red")
def atomic(c: InstructionContext, m: Modifiers) -> None:
    """Reads a word, writes a new one, and (atom) gives the old one."""
    type_ = SCALAR_TYPES[m["type"]]
    returns = c.node.opcode == "atom"
    check_count(c, (2 + returns) + (m["op"] == "cas"))
    if type_.bits == 16:
        raise c.unsupported("16-bit compare-and-swap is not supported", "use a 32-bit word")
    base, offset, symbol_space = c.address(c.operands[int(returns)])
    space = space_of(m, symbol_space)
    values = [c.read(operand, type_) for operand in c.operands[1 + returns :]]
    b = c.b
    address = b.add(base, offset)
    form = combined_form(m["op"], type_) if c.kernel.combines else None
    if form is None or not isinstance(address, Imm) or c.kernel.shape.threads == 1:
        old = _one_lane_at_a_time(c, m, type_, address, space, values)
        if returns:
            c.write(c.operands[0], type_, old)
        return
    # A pass chooses between the two ways, once it is known which lanes come here.
    result = tuple(b.variable() for _ in values[0])
    combined, single, after = (b.label(name) for name in ("combined", "single", "joined"))
    b.choose(combined, single)
    b.place(combined)
    _assign(b, result, combine_lanes(c.kernel, form, address, space, values[0]))
    b.jump(after)
    b.place(single)
    _assign(b, result, _one_lane_at_a_time(c, m, type_, address, space, values))
    b.place(after)
    if returns:
        c.write(c.operands[0], type_, (result[0], result[1]) if len(result) == 2 else (result[0],))


def _assign(b: IrBuilder, registers: tuple[Reg, ...], words: Words) -> None:
    for register, word in zip(registers, words, strict=True):
        b.assign(register, word)


def _one_lane_at_a_time(
    c: InstructionContext,
    m: Modifiers,
    type_: ScalarType,
    address: Value,
    space: str,
    values: list[Words],
) -> Words:
    """The atomic step of each lane on its own; lanes with one address queue up. The old value."""
    b = c.b
    old: Words = (b.load_exclusive(address, space),)
    if type_.bits == 64:
        # The store half may load the high word: no other lane gets between.
        b.begin_store()
        old = (old[0], b.load(address, 4, space))
        new = _new_wide(c, m["op"], type_, old, values)
    else:
        new = (_new_word(c, m["op"], type_, old[0], [value[0] for value in values]),)
        b.begin_store()
    for index, word in enumerate(new):
        b.store(address, word, 4 * index, space)
    b.finish_exclusive()
    return old


def _new_word(
    c: InstructionContext, op: str, type_: ScalarType, old: Value, values: list[Value]
) -> Value:
    b = c.b
    value = values[0]
    match op:
        case "exch":
            return value
        case "cas":
            return b.select(b.compare("seteq", old, value), values[1], old)
        case "min" | "max":
            return b.op(op + ("s" if type_.signed else "u"), old, value)
        case "inc":
            return b.select(b.compare("setgeu", old, value), ZERO, b.add(old, 1))
        case "dec":
            # old - 1 is at most limit - 1 exactly where 0 < old <= limit.
            return b.op("minu", b.sub(old, 1), value)
        case _:
            return b.op(op, old, value)


def _new_wide(
    c: InstructionContext, op: str, type_: ScalarType, old: Words, values: list[Words]
) -> Words:
    b = c.b
    x = _pair(old)
    y = _pair(values[0])
    match op:
        case "exch":
            return y
        case "cas":
            return select_wide(b, equal_wide(b, x, y), _pair(values[1]), x)
        case "min" | "max":
            less = less_wide(b, x, y, signed=type_.signed)
            return select_wide(b, less, x, y) if op == "min" else select_wide(b, less, y, x)
        case "add":
            return add_wide(b, x, y)
        case _:
            return b.op(op, x[0], y[0]), b.op(op, x[1], y[1])


def _pair(words: Words) -> Pair:
    assert len(words) == 2
    return words
