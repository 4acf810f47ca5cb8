"""Loads and stores: ld ldu st, and hints that do nothing."""

from __future__ import annotations

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.expansions.arithmetic import check_count
from qgpu_ptx.expansions.conversion import pack, unpack
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.instruction_context import InstructionContext, Words
from qgpu_ptx.ir import WORD, ZERO, Imm, Special, Value
from qgpu_ptx.lowering_symbols import ParameterBlock
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES, ScalarType

WORD_BYTES = 4


def space_of(m: Modifiers, symbol_space: str) -> str:
    """The state space of an access, "" for a generic address."""
    return m.get("space", "").split("::")[0] or symbol_space


@expansion("ld", "ldu")
def ld(c: InstructionContext, m: Modifiers) -> None:
    """Loads values; a register wider than the type gets the sign or zeros."""
    check_count(c, 2)
    type_ = SCALAR_TYPES[m["type"]]
    targets = c.elements(c.operands[0])
    _check_elements(c, m, targets)
    values = _load(c, m, type_, len(targets))
    for target, value in zip(targets, values, strict=True):
        c.write(target, type_, value)


def _check_elements(c: InstructionContext, m: Modifiers, given: tuple[ast.Operand, ...]) -> None:
    count = int(m.get("vec", "v1")[1:])
    if len(given) != count:
        raise c.error(f"moves {count} values, {len(given)} given")


def _load(c: InstructionContext, m: Modifiers, type_: ScalarType, count: int) -> list[Words]:
    operand = c.operands[1]
    parameter = _parameter(c, operand)
    if parameter is not None:
        block, offset = parameter
        return [_load_parameter(c, block, offset + i * type_.bytes, type_) for i in range(count)]
    base, offset, symbol_space = c.address(operand)
    space = space_of(m, symbol_space)
    volatile = m.get("order") not in (None, "weak")
    total = type_.bytes * count
    if total < WORD_BYTES:
        places = [offset + i * type_.bytes for i in range(count)]
        return [
            (c.b.load_part(c.b.add(base, place), type_.bytes, space, volatile=volatile),)
            for place in places
        ]
    words: list[Value] = [
        c.b.load(base, offset + i, space, volatile=volatile) for i in range(0, total, WORD_BYTES)
    ]
    return split_words(c, words, type_, count)


def split_words(
    c: InstructionContext, words: list[Value], type_: ScalarType, count: int
) -> list[Words]:
    """The elements that lie side by side in memory words."""
    if type_.bits == 64:
        return [(words[2 * i], words[2 * i + 1]) for i in range(count)]
    if type_.bits == 32:
        return [(word,) for word in words]
    per_word = 32 // type_.bits
    result: list[Words] = []
    for index, word in enumerate(words):
        here = min(per_word, count - index * per_word)
        result += [(value,) for value in unpack(c, (word,), type_.bits, here)]
    return result


# Parameters


def _parameter(c: InstructionContext, operand: ast.Operand) -> tuple[ParameterBlock, int] | None:
    """The parameter block that an address lies in, and the offset; None for memory."""
    if not isinstance(operand, ast.Address):
        return None
    if isinstance(operand.base, ast.Name):
        symbol = c.symbol(operand.base)
        if isinstance(symbol, ParameterBlock):
            return symbol, operand.offset
    elif isinstance(operand.base, ast.Integer):
        return None
    base, offset, _ = c.address(operand)
    return c.kernel.parameter_at(c.b.add(base, offset))


def _load_parameter(
    c: InstructionContext, block: ParameterBlock, offset: int, type_: ScalarType
) -> Words:
    _check_parameter(c, block, offset, type_)
    if block.data is not None:
        bits = int.from_bytes(block.data[offset : offset + type_.bytes], "little")
        words: Words = (Imm(bits & WORD),)
        return (*words, Imm(bits >> 32)) if type_.bits == 64 else words
    word = block.word(offset, c.b.variable)
    if type_.bits == 64:
        return word, block.word(offset + WORD_BYTES, c.b.variable)
    if type_.bits == 32:
        return (word,)
    return (c.b.part(word, offset % WORD_BYTES, type_.bytes),)


def _check_parameter(
    c: InstructionContext, block: ParameterBlock, offset: int, type_: ScalarType
) -> None:
    if not 0 <= offset <= block.size - type_.bytes:
        raise c.error(f"offset {offset} of a parameter that holds {block.size} bytes")
    if offset % min(type_.bytes, WORD_BYTES):
        raise c.error(f"offset {offset} is no multiple of the {type_.bytes} bytes accessed")


@expansion("st")
def st(c: InstructionContext, m: Modifiers) -> None:
    """Stores the low bits of each value; neighbours are not touched."""
    check_count(c, 2)
    type_ = SCALAR_TYPES[m["type"]]
    # Sign or zero extension of what is stored does not matter, so the cheaper one is taken.
    bits = SCALAR_TYPES[f"b{type_.bits}"]
    sources = c.elements(c.operands[1])
    _check_elements(c, m, sources)
    values = [c.read(source, bits, relaxed=True) for source in sources]
    parameter = _parameter(c, c.operands[0])
    if parameter is not None:
        block, offset = parameter
        for index, value in enumerate(values):
            _store_parameter(c, block, offset + index * type_.bytes, type_, value)
        return
    base, offset, symbol_space = c.address(c.operands[0])
    space = space_of(m, symbol_space)
    total = type_.bytes * len(values)
    flat = [word for value in values for word in value]
    if type_.bits < 32:
        per_word = 32 // type_.bits
        flat = [
            pack(c, flat[i : i + per_word], type_.bits)[0] for i in range(0, len(flat), per_word)
        ]
    if total < WORD_BYTES:
        _store_part(c, c.b.add(base, offset), flat[0], total, space)
        return
    for index, word in enumerate(flat):
        c.b.store(base, word, offset + WORD_BYTES * index, space)


def _store_part(c: InstructionContext, address: Value, value: Value, size: int, space: str) -> None:
    """Stores part of a word.

    Where lanes do not make the whole word together, each replaces its part as one atomic step.
    """
    b = c.b
    after = None
    if WORD_BYTES // size <= c.kernel.config.lanes:
        after = b.skip_unless(b.nonzero(b.store_part(address, value, size, space)))
    holes = b.not_(b.op("shlb", Imm(0xFFFF), address)) if size == 2 else ZERO
    old = b.load_exclusive(address, space, size)
    kept = b.op("clrb", old, Special.PLACE) if size == 1 else b.and_(old, holes)
    merged = b.or_(kept, b.op("shlb", value, Special.PLACE))
    b.begin_store()
    b.store(b.and_(address, WORD - 3), merged, 0, space)
    b.finish_exclusive()
    if after is not None:
        b.place(after)


def _store_parameter(
    c: InstructionContext, block: ParameterBlock, offset: int, type_: ScalarType, value: Words
) -> None:
    if block.data is not None:
        raise c.unsupported("kernel parameters cannot be stored to")
    _check_parameter(c, block, offset, type_)
    if type_.bytes < min(WORD_BYTES, block.size):
        word, shift = block.word(offset, c.b.variable), 8 * (offset % WORD_BYTES)
        mask = (1 << type_.bits) - 1
        kept = c.b.and_(word, WORD - (mask << shift))
        value = (c.b.or_(kept, c.b.shl(c.b.and_(value[0], mask), shift)),)
    for index, part in enumerate(value):
        c.b.assign(block.word(offset + WORD_BYTES * index, c.b.variable), part)


@expansion("prefetch", "prefetchu", "membar", "fence", "nanosleep")
def nothing(c: InstructionContext, m: Modifiers) -> None:
    """No effect: there is no cache, memory is sequentially consistent, time is not observed."""
