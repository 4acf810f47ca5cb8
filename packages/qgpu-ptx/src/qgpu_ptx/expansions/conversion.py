"""Moves and conversions: mov cvt cvta isspacep prmt."""

from __future__ import annotations

from qgpu_ptx.expansions.arithmetic import check_count
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.expansions.wide_words import less_wide, select_wide
from qgpu_ptx.instruction_context import InstructionContext, Words
from qgpu_ptx.ir import WORD, ZERO, Imm, Value
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES, ScalarType

B32 = SCALAR_TYPES["b32"]


@expansion("mov")
def mov(c: InstructionContext, m: Modifiers) -> None:
    """Copies; packs or unpacks a vector, first element lowest."""
    check_count(c, 2)
    if m["type"] == "pred":
        c.write_condition(c.operands[0], c.condition(c.operands[1]))
        return
    type_ = SCALAR_TYPES[m["type"]]
    targets, sources = c.elements(c.operands[0]), c.elements(c.operands[1])
    count = max(len(targets), len(sources))
    if count == 1:
        c.write(targets[0], type_, c.read(sources[0], type_))
        return
    part = SCALAR_TYPES.get(f"b{type_.bits // count}")
    if part is None or count not in (2, 4) or len(targets) > 1 < len(sources):
        raise c.error("packs or unpacks one vector of 2 or 4 elements")
    if len(sources) > 1:
        c.write(targets[0], type_, pack(c, [c.read(s, part)[0] for s in sources], part.bits))
        return
    for target, value in zip(
        targets, unpack(c, c.read(sources[0], type_), part.bits, count), strict=True
    ):
        c.write(target, part, (value,))


def pack(c: InstructionContext, values: list[Value], bits: int) -> Words:
    """Elements of `bits` bits, zero-extended, side by side in words, the first lowest."""
    words: list[Value] = []
    per_word = 32 // bits
    for start in range(0, len(values), per_word):
        word: Value = ZERO
        for index, value in enumerate(values[start : start + per_word]):
            word = c.b.or_(word, c.b.shl(value, bits * index)) if index else value
        words.append(word)
    return (words[0], words[1]) if len(words) == 2 else (words[0],)


def unpack(c: InstructionContext, words: Words, bits: int, count: int) -> list[Value]:
    """The elements of packed words, zero-extended."""
    values: list[Value] = []
    for index in range(count):
        word, low = divmod(bits * index, 32)
        whole = words[word]
        values.append(whole if bits == 32 else c.b.part(whole, low // 8, bits // 8))
    return values


@expansion("cvt")
def cvt(c: InstructionContext, m: Modifiers) -> None:
    """Converts between integers; `.sat` clamps; `.pack` clamps two and joins them."""
    if "op" in m:
        _pack_saturated(c, m)
        return
    check_count(c, 2)
    to, from_ = SCALAR_TYPES[m["to"]], SCALAR_TYPES[m["from"]]
    words = c.read(c.operands[1], from_, relaxed=True)
    if to.bits == 64 and len(words) == 1:
        words = (words[0], c.b.sar(words[0], 31) if from_.signed else ZERO)
    if "sat" in m:
        words = _saturate(c, words, from_, to)
    c.write(c.operands[0], to, words)


def _saturate(c: InstructionContext, words: Words, from_: ScalarType, to: ScalarType) -> Words:
    """The value clamped to the range of `to`; words hold it extended as `from_`."""
    (low, high), (least, most) = to.range, from_.range
    if len(words) == 1 or from_.bits < 64:
        word = words[0]
        if from_.signed:
            if low > least:
                word = c.b.op("maxs", word, low)
            if high < most:
                word = c.b.op("mins", word, high)
        elif high < most:
            word = c.b.op("minu", word, high)
        if to.bits < 64:
            return (word,)
        extra = c.b.sar(word, 31) if from_.signed else ZERO
        return word, extra
    pair: tuple[Value, Value] = words  # type: ignore[assignment]
    if from_.signed and low > least:
        pair = _limit(c, pair, low, signed=True, below=True)
    if high < most:
        pair = _limit(c, pair, high, signed=from_.signed, below=False)
    return pair


def _limit(
    c: InstructionContext, pair: tuple[Value, Value], limit: int, *, signed: bool, below: bool
) -> tuple[Value, Value]:
    bound = Imm(limit & WORD), Imm(limit >> 32 & WORD)
    first, second = (pair, bound) if below else (bound, pair)
    return select_wide(c.b, less_wide(c.b, first, second, signed=signed), bound, pair)


def _pack_saturated(c: InstructionContext, m: Modifiers) -> None:
    check_count(c, 4)
    low, high = SCALAR_TYPES[m["to"]].range
    clamped = []
    for position in (1, 2):
        value = c.word(position, SCALAR_TYPES["s32"])
        value = c.b.op("mins", c.b.op("maxs", value, low), high)
        clamped.append(c.b.and_(value, 0xFF))
    rest = c.b.shl(c.word(3, B32), 16)
    joined = c.b.or_(c.b.shl(clamped[0], 8), clamped[1])
    c.write(c.operands[0], B32, (c.b.or_(rest, joined),))


@expansion("cvta")
def cvta(c: InstructionContext, m: Modifiers) -> None:
    """Nothing to convert: all state spaces lie in one space of addresses."""
    check_count(c, 2)
    type_ = SCALAR_TYPES[m["type"]]
    c.write(c.operands[0], type_, c.read(c.operands[1], type_))


@expansion("isspacep")
def isspacep(c: InstructionContext, m: Modifiers) -> None:
    """Whether an address lies in a state space."""
    check_count(c, 2)
    bits = c.kernel.module.address_size
    address = c.read(c.operands[1], SCALAR_TYPES[f"u{bits}"])[0]
    space = m["space"]
    if space not in ("global", "shared"):
        raise c.unsupported("only .global and .shared can be told apart")
    shared = c.b.compare("setgeu", address, c.kernel.config.shared_base)
    c.write_condition(c.operands[0], shared if space == "shared" else c.b.invert(shared))


# Byte numbers (0-3 of a, 4-7 of b) by selector, lowest byte first.
_PRMT_MODES = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


@expansion("prmt")
def prmt(c: InstructionContext, m: Modifiers) -> None:
    """Picks four bytes of b:a; in the default mode, selector bit 3 spreads the byte's sign."""
    check_count(c, 4)
    a, b, selector = (c.word(position, B32) for position in (1, 2, 3))
    if isinstance(selector, Imm):
        nibbles = [selector.value >> 4 * i & 15 for i in range(4)]
        if "mode" in m:
            nibbles = list(_PRMT_MODES[m["mode"]][selector.value & 3])
        c.write(c.operands[0], B32, (_pick_known(c, a, b, nibbles),))
    elif "mode" in m:
        raise c.unsupported("the selector of this mode must be a constant")
    else:
        c.write(c.operands[0], B32, (_pick(c, a, b, selector),))


def _pick_known(c: InstructionContext, a: Value, b: Value, nibbles: list[int]) -> Value:
    """Bytes that keep their place are taken from each word together."""
    result: Value = ZERO
    groups: dict[tuple[int, int, bool], int] = {}
    for index, nibble in enumerate(nibbles):
        word, byte = divmod(nibble & 7, 4)
        key = (word, byte - index, nibble >= 8)
        groups[key] = groups.get(key, 0) | 0xFF << 8 * index
    for (word, distance, spread), mask in groups.items():
        source = b if word else a
        if spread:
            # Each byte's sign, as a byte of ones: (x >> 7 & 1) * 255 in every byte.
            signs = c.b.and_(c.b.shr(source, 7), 0x01010101)
            source = c.b.sub(c.b.shl(signs, 8), signs)
        moved = c.b.shr(source, 8 * distance) if distance >= 0 else c.b.shl(source, -8 * distance)
        result = c.b.or_(c.b.and_(moved, mask), result)
    return result


def _pick(c: InstructionContext, a: Value, b: Value, selector: Value) -> Value:
    result: Value = ZERO
    for index in range(4):
        nibble = c.b.and_(c.b.shr(selector, 4 * index), 15)
        shift = c.b.shl(c.b.and_(nibble, 3), 3)
        in_b = c.b.nonzero(c.b.and_(nibble, 4))
        byte = c.b.and_(c.b.shr(c.b.select(in_b, b, a), shift), 0xFF)
        sign = c.b.and_(c.b.sub(ZERO, c.b.shr(byte, 7)), 0xFF)
        byte = c.b.select(c.b.nonzero(c.b.and_(nibble, 8)), sign, byte)
        result = c.b.or_(result, c.b.shl(byte, 8 * index)) if index else byte
    return result
