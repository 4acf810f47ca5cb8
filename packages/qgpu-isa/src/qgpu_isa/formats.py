"""Record formats for a live-out: which one the machine chooses, and what its tokens hold.

A live-out is the row of one register over the lanes of a pass. The first token of a record (the
lead) names the slot it came from; WIDE records carry their bits in RAW continuation tokens, at
most four a record, so that the causal convolution sees a whole record at its last token.
"""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa.machine_config import CHUNKS_PER_RECORD, MachineConfig
from qgpu_isa.vocabulary import Token, TokenClass, Vocabulary, Width

WIDTH_BITS = {Width.W4: 4, Width.W8: 8, Width.W16: 16, Width.W32: 32}


@dataclass(frozen=True)
class WideShape:
    """How a WIDE record of one width is cut into tokens.

    Attributes:
        bits: payload bits of the whole row.
        parts: records (lead tokens).
        conts: continuation tokens of each record.
    """

    bits: int
    parts: int
    conts: int


def wide_shape(config: MachineConfig, width: Width) -> WideShape:
    """The shape of a width's records on a machine."""
    bits = 32 if width is Width.U32 else WIDTH_BITS[width] * config.lanes
    conts = -(-bits // config.payload_bits)
    parts = -(-conts // CHUNKS_PER_RECORD)
    return WideShape(bits, parts, min(conts, CHUNKS_PER_RECORD))


def choose_format(
    config: MachineConfig, words: tuple[int, ...], small_bits: int
) -> TokenClass | Width:
    """The format the machine chooses for a register row: the first of the list that fits."""
    limit = 1 << small_bits
    lanes = range(config.lanes)
    if all(w < 2 for w in words):
        return TokenClass.BITS
    if len(set(words)) == 1 and words[0] < limit:
        return TokenClass.UNIFORM
    for form, stride in ((TokenClass.LINEAR, 1), (TokenClass.LINEAR4, 4)):
        aligned = words[0] < limit and words[0] // stride % config.lanes == 0
        if aligned and all(words[i] == words[0] ^ (stride * i) for i in lanes):
            return form
    if len(set(words)) == 1:
        return Width.U32
    for width in (Width.W4, Width.W8):
        if all(w < 1 << WIDTH_BITS[width] for w in words):
            return width
    if all(w < 1 << 15 or w >= (1 << 32) - (1 << 15) for w in words):
        return Width.W16
    return Width.W32


def record_tokens(vocab: Vocabulary, slot: int, words: tuple[int, ...]) -> list[Token]:
    """The tokens of a live-out of `slot` whose row is `words` (one word a lane)."""
    config = vocab.config
    form = choose_format(config, words, vocab.small_bits)
    if form is TokenClass.BITS:
        return [Token(form, (sum(w << i for i, w in enumerate(words)), slot))]
    if isinstance(form, TokenClass):
        return [Token(form, (words[0], slot))]
    shape = wide_shape(config, form)
    if form is Width.U32:
        row = words[0]
    else:
        width = WIDTH_BITS[form]
        row = sum((w & ((1 << width) - 1)) << (width * i) for i, w in enumerate(words))
    tokens = []
    for part in range(shape.parts):
        tokens.append(Token(TokenClass.WIDE, (part, int(form), slot)))
        for cont in range(shape.conts):
            shift = (part * CHUNKS_PER_RECORD + cont) * config.payload_bits
            bits = row >> shift & ((1 << config.payload_bits) - 1)
            tokens.append(Token(TokenClass.RAW, (bits,)))
    return tokens


def predicate_tokens(slot: int, lanes: int) -> list[Token]:
    """The record of a predicate row, a bit mask over the lanes."""
    return [Token(TokenClass.BITS, (lanes, slot))]


def word_tokens(config: MachineConfig, bits: int, width: int) -> list[Token]:
    """RAW tokens that carry `width` bits, lowest first."""
    mask = (1 << config.payload_bits) - 1
    return [
        Token(TokenClass.RAW, (bits >> low & mask,)) for low in range(0, width, config.payload_bits)
    ]
