"""Record formats for a live-out: which one the machine chooses, and what its tokens hold.

A live-out is the row of one register over the lanes of a pass. Rows of a simple shape take one
token. Others are sent group by group, a group being the lanes whose words one DeltaNet head holds,
and only the groups that changed: a lead token that says how many nibbles of every word follow, then
one RAW token for each nibble, which carries it for all lanes of the group, the lowest first. A
record has at most four RAW tokens, so that the causal convolution sees all of it at its last token;
words of more than four nibbles take a second record.
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

NIBBLE_MASK = (1 << NIBBLE_BITS) - 1
SIGN = 1 << (WORD_BITS - 1)


@dataclass(frozen=True)
class GroupFormat:
    """How the words of one group are sent.

    Attributes:
        group: its number.
        nibbles: nibbles of each word that are sent, 1 to 8.
        signed: whether the missing ones are copies of the sign (the highest bit sent), not 0.
    """

    group: int
    nibbles: int
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
) -> TokenClass | list[GroupFormat]:
    """The format the machine chooses for a row: the first that holds it.

    Args:
        old: the destination's words before, a word a lane.
        words: its words from now on.

    Returns:
        the class of a record that covers the row, or the formats of the groups that changed.
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
    return [
        _group_format(g, words[low : low + config.group_lanes])
        for g, low in enumerate(range(0, config.lanes, config.group_lanes))
        if any(old[i] != words[i] for i in range(low, low + config.group_lanes))
    ]


def _counts_up(words: Sequence[int], stride: int) -> bool:
    return all(w == words[0] + stride * i for i, w in enumerate(words))


def _group_format(group: int, words: Sequence[int]) -> GroupFormat:
    unsigned = max(nibbles_of(w, signed=False) for w in words)
    signed = max(nibbles_of(w, signed=True) for w in words)
    return GroupFormat(group, min(unsigned, signed), signed < unsigned)


def nibbles_of(word: int, *, signed: bool) -> int:
    """Nibbles that hold a word as an unsigned or as a signed number, at least 1."""
    if signed:
        value = word - 2 * SIGN if word >= SIGN else word
        bits = (value if value >= 0 else ~value).bit_length() + 1
    else:
        bits = word.bit_length()
    return max(1, -(-bits // NIBBLE_BITS))


def group_tokens(nibbles: int) -> int:
    """Tokens of a group's records: a lead for every four nibbles, and the nibbles."""
    return nibbles + -(-nibbles // CHUNKS_PER_RECORD)


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
    tokens: list[Token] = []
    for index, f in enumerate(form):
        last = int(index == len(form) - 1)
        group = words[f.group * config.group_lanes :][: config.group_lanes]
        for nibble in range(f.nibbles):
            part, place = divmod(nibble, CHUNKS_PER_RECORD)
            if place == 0:
                lead = (f.nibbles - 1, int(f.signed), part, f.group, last, slot)
                tokens.append(Token(TokenClass.GROUP, lead))
            shift = NIBBLE_BITS * nibble
            bits = (((w >> shift) & NIBBLE_MASK) << NIBBLE_BITS * i for i, w in enumerate(group))
            tokens.append(Token(TokenClass.RAW, (sum(bits),)))
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
