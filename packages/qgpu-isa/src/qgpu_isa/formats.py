"""Record formats for a live-out: which one the machine chooses, and what its tokens hold.

A live-out is the row of one register over the lanes of a pass. Rows of a simple shape take one
token. In others a lead token carries the lowest bit of every word, and RAW tokens the bits above
it, as many as the words need. If all lanes changed and the words are short, one ROW record has two
bits of every word in a token. Otherwise the row is sent group by group, a group being the lanes
whose words one DeltaNet head holds, and only the groups that changed, four bits of each of its
words in a token. A record has at most four RAW tokens, so that the causal convolution sees all of
it at its last token; words of more than 17 bits take a second record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu_isa.machine_config import (
    CHUNKS_PER_RECORD,
    NIBBLE_BITS,
    WORD_BITS,
    MachineConfig,
)
from qgpu_isa.vocabulary import Token, TokenClass, Vocabulary

SIGN = 1 << (WORD_BITS - 1)


@dataclass(frozen=True)
class GroupFormat:
    """How the words of one group are sent.

    Attributes:
        group: its number.
        nibbles: nibbles of each word that are sent above its lowest bit, 0 to 8.
        signed: whether what is missing are copies of the sign (the highest bit sent), not 0.
    """

    group: int
    nibbles: int
    signed: bool


@dataclass(frozen=True)
class RowFormat:
    """How the words of all groups are sent in one record.

    Attributes:
        pairs: pairs of bits of each word that are sent above its lowest bit, 0 to 4.
        signed: as of a group.
    """

    pairs: int
    signed: bool


def linear_shift(config: MachineConfig, cls: TokenClass) -> int:
    """Place of the lowest bit of field `value` within the word of a one-token format.

    LINEAR and LINEAR4 rows start at a multiple of what they cover, whose low bits are not sent.
    """
    return {
        TokenClass.UNIFORM: 0,
        TokenClass.LINEAR: config.lane_bits,
        TokenClass.LINEAR4: config.lane_bits + 2,
    }[cls]


def choose_format(
    vocab: Vocabulary, old: Sequence[int], words: Sequence[int]
) -> TokenClass | RowFormat | list[GroupFormat]:
    """The format the machine chooses for a row: the first that holds it.

    Args:
        old: the destination's words before, a word a lane.
        words: its words from now on.

    Returns:
        the class of a record that covers the row whatever its lanes hold, how one record sends the
        words, or the formats of the groups that changed.
    """
    config = vocab.config
    limit = 1 << vocab.small_bits
    if all(w < 2 for w in words):
        return TokenClass.BITS
    uniform = len(set(words)) == 1
    if uniform and words[0] < limit:
        return TokenClass.UNIFORM
    for form, stride in ((TokenClass.LINEAR, 1), (TokenClass.LINEAR4, 4)):
        number, rest = divmod(words[0], stride * config.lanes)
        if not rest and number < limit and _counts_up(words, stride):
            return form
    if list(old) == list(words):
        return TokenClass.SAME
    if uniform:
        return TokenClass.WORD
    size = config.group_lanes
    changed = [
        low for low in range(0, config.lanes, size) if list(old)[low:][:size] != words[low:][:size]
    ]
    if len(changed) == config.groups > 1:
        pairs, signed = _pieces(words, config.row_bits)
        if pairs <= CHUNKS_PER_RECORD:
            return RowFormat(pairs, signed)
    return [GroupFormat(low // size, *_pieces(words[low:][:size], NIBBLE_BITS)) for low in changed]


def _counts_up(words: Sequence[int], stride: int) -> bool:
    return all(w == words[0] + stride * i for i, w in enumerate(words))


def _pieces(words: Sequence[int], size: int) -> tuple[int, bool]:
    """Pieces of `size` bits above the lowest that hold all words, and whether as signed ones."""
    unsigned, signed = (
        max(pieces_of(width_of(w, signed=s), size) for w in words) for s in (False, True)
    )
    return min(unsigned, signed), signed < unsigned


def width_of(word: int, *, signed: bool) -> int:
    """Bits that hold a word as an unsigned or as a signed number, at least 1."""
    if not signed:
        return max(1, word.bit_length())
    value = word - 2 * SIGN if word >= SIGN else word
    return (value if value >= 0 else ~value).bit_length() + 1


def pieces_of(width: int, size: int) -> int:
    """Pieces of `size` bits that a record sends of words of `width` bits; the lead has one bit."""
    return -(-(width - 1) // size)


def group_tokens(nibbles: int) -> int:
    """Tokens of a group's records: a lead, one more behind four nibbles, and the nibbles."""
    return nibbles + max(1, -(-nibbles // CHUNKS_PER_RECORD))


def row_tokens(config: MachineConfig, width: int) -> int:
    """Tokens of the records of a row of which all groups changed, of words of `width` bits."""
    pairs = pieces_of(width, config.row_bits)
    if config.groups > 1 and pairs <= CHUNKS_PER_RECORD:
        return 1 + pairs
    return config.groups * group_tokens(pieces_of(width, NIBBLE_BITS))


def word_record_tokens(config: MachineConfig) -> int:
    """Tokens of a WORD record."""
    return 1 + WORD_BITS // config.payload_bits


def record_tokens(
    vocab: Vocabulary, slot: int, old: Sequence[int], words: Sequence[int]
) -> list[Token]:
    """The tokens of a live-out of `slot` that turns the row `old` into `words` (a word a lane)."""
    config = vocab.config
    form = choose_format(vocab, old, words)
    match form:
        case TokenClass.BITS:
            return predicate_tokens(slot, sum(w << i for i, w in enumerate(words)))
        case TokenClass.SAME:
            return [Token(form, (slot,))]
        case TokenClass.WORD:
            return [Token(form, (slot,)), *word_tokens(config, words[0], WORD_BITS)]
        case TokenClass():
            return [Token(form, (words[0] >> linear_shift(config, form), slot))]
    if isinstance(form, RowFormat):
        lead = Token(TokenClass.ROW, (_plane(words, 0, 1), form.pairs, int(form.signed), slot))
        return [lead, *_raws(words, form.pairs, config.row_bits)]
    tokens: list[Token] = []
    for index, f in enumerate(form):
        last = int(index == len(form) - 1)
        group = words[f.group * config.group_lanes :][: config.group_lanes]
        raws = _raws(group, f.nibbles, NIBBLE_BITS)
        for part in range(group_tokens(f.nibbles) - f.nibbles):
            values = (_plane(group, 0, 1), f.nibbles, int(f.signed), part, f.group, last, slot)
            first = CHUNKS_PER_RECORD * part
            tokens += [Token(TokenClass.GROUP, values), *raws[first : first + CHUNKS_PER_RECORD]]
    return tokens


def _raws(words: Sequence[int], pieces: int, size: int) -> list[Token]:
    """RAW tokens of the pieces above the lowest bit."""
    return [Token(TokenClass.RAW, (_plane(words, 1 + size * i, size),)) for i in range(pieces)]


def _plane(words: Sequence[int], low: int, size: int) -> int:
    """`size` bits of every word from bit `low` on, side by side, the first word's lowest."""
    return sum((w >> low & (1 << size) - 1) << size * i for i, w in enumerate(words))


def predicate_tokens(slot: int, lanes: int) -> list[Token]:
    """The record of a predicate row, a bit mask over the lanes."""
    return [Token(TokenClass.BITS, (lanes, slot))]


def word_tokens(config: MachineConfig, bits: int, width: int) -> list[Token]:
    """RAW tokens that carry `width` bits, lowest first."""
    mask = (1 << config.payload_bits) - 1
    return [
        Token(TokenClass.RAW, (bits >> low & mask,)) for low in range(0, width, config.payload_bits)
    ]
