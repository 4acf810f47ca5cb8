"""Records of live-outs, read back by a decoder that knows only docs/tokens.md."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qgpu_isa.formats import (
    GroupFormat,
    choose_format,
    predicate_tokens,
    record_tokens,
    word_tokens,
)
from qgpu_isa.machine_config import DEFAULT, NANO, PROFILES, MachineConfig
from qgpu_isa.testing import configs, words
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary

WORD = 1 << 32


def read_record(
    config: MachineConfig, tokens: list[Token], old: Sequence[int]
) -> tuple[int, list[int]]:
    """Slot and row of a record."""
    lanes = range(config.lanes)
    *values, slot = tokens[0].values
    match tokens[0].cls:
        case TokenClass.BITS:
            row = [values[0] >> i & 1 for i in lanes]
        case TokenClass.UNIFORM:
            row = [values[0] for _ in lanes]
        case TokenClass.LINEAR:
            row = [config.lanes * values[0] + i for i in lanes]
        case TokenClass.LINEAR4:
            row = [4 * (config.lanes * values[0] + i) for i in lanes]
        case TokenClass.SAME:
            row = list(old)
        case TokenClass.WORD:
            word = sum(t.values[0] << config.payload_bits * i for i, t in enumerate(tokens[1:]))
            assert len(tokens) == 1 + 32 // config.payload_bits
            return slot, [word for _ in lanes]
        case TokenClass.GROUP:
            return slot, read_groups(config, tokens, old)
    assert len(tokens) == 1
    return slot, row


def read_groups(config: MachineConfig, tokens: list[Token], old: Sequence[int]) -> list[int]:
    """The row that GROUP records leave behind."""
    size = min(4, config.lanes)
    row = list(old)
    rest = list(tokens)
    last = 0
    slot = rest[0].values[-1]
    while rest:
        assert not last
        nibbles, signed, _, group, last, _ = rest[0].values
        bits = []
        for part in range(2):
            if 4 * part > nibbles:
                break
            lead = rest.pop(0)
            assert lead == Token(TokenClass.GROUP, (nibbles, signed, part, group, last, slot))
            while len(bits) < min(nibbles + 1, 4 * part + 4):
                bits.append(rest.pop(0).values[0])
        for i in range(size):
            word = sum((b >> 4 * i & 15) << 4 * k for k, b in enumerate(bits))
            width = 4 * len(bits)
            if signed and word >> (width - 1):
                word -= 1 << width
            row[size * group + i] = word % WORD
    assert last
    return row


def rows(config: MachineConfig) -> st.SearchStrategy[tuple[int, ...]]:
    n = config.lanes

    def scaled(limit: int) -> st.SearchStrategy[list[int]]:
        return st.lists(st.integers(0, limit), min_size=n, max_size=n)

    near_zero = st.lists(st.integers(-(1 << 15) - 2, (1 << 15) + 1), min_size=n, max_size=n)
    linear = st.builds(
        lambda start, stride: [start + stride * i for i in range(n)],
        st.integers(0, 2100),
        st.sampled_from([0, 1, 4]),
    )
    edited = st.builds(
        lambda row, lane, word: [*row[:lane], word, *row[lane + 1 :]],
        linear,
        st.integers(0, n - 1),
        words(),
    )
    anything = st.lists(words(), min_size=n, max_size=n)
    return st.one_of(scaled(1), scaled(16), scaled(256), near_zero, linear, edited, anything).map(
        lambda row: tuple(word % WORD for word in row)
    )


@settings(deadline=None)
@given(data=st.data(), config=configs(), slot=st.integers(0, 4))
def test_a_record_reads_back_as_its_row(
    data: st.DataObject, config: MachineConfig, slot: int
) -> None:
    old, drawn = data.draw(rows(config)), data.draw(rows(config))
    kept = data.draw(st.integers(0, config.full_mask))
    row = [o if kept >> i & 1 else w for i, (o, w) in enumerate(zip(old, drawn, strict=True))]
    vocab = vocabulary(config)
    tokens = record_tokens(vocab, slot, old, row)
    assert all(vocab.decode(vocab.encode(token)) == token for token in tokens)
    assert read_record(config, tokens, old) == (slot, row)


def group(number: int, nibbles: int, signed: bool = False) -> GroupFormat:
    return GroupFormat(number, nibbles, signed)


BELOW = WORD - 1
CHOICES = [
    # The row over 8 lanes, over zeros, and the length of its record on the default machine.
    ([0, 1] * 4, TokenClass.BITS, 1),
    ([0] * 8, TokenClass.BITS, 1),
    ([2047] * 8, TokenClass.UNIFORM, 1),
    ([2048] * 8, TokenClass.WORD, 3),
    ([8 + i for i in range(8)], TokenClass.LINEAR, 1),
    ([9 + i for i in range(8)], [group(0, 1), group(1, 2)], 5),
    ([16376 + i for i in range(8)], TokenClass.LINEAR, 1),
    ([16384 + i for i in range(8)], [group(0, 4), group(1, 4)], 10),
    ([16384 + 4 * i for i in range(8)], TokenClass.LINEAR4, 1),
    ([65504 + 4 * i for i in range(8)], TokenClass.LINEAR4, 1),
    ([65536 + 4 * i for i in range(8)], [group(0, 5), group(1, 5)], 14),
    ([33 + 4 * i for i in range(8)], [group(0, 2), group(1, 2)], 6),
    ([15, 2] * 4, [group(0, 1), group(1, 1)], 4),
    ([16, 2] * 4, [group(0, 2), group(1, 2)], 6),
    ([0, 0, 0, 7, 0, 0, 0, 0], [group(0, 1)], 2),
    ([0, 0, 0, 0, 0, 0, 0, 300], [group(1, 3)], 4),
    ([BELOW, 2] * 4, [group(0, 1, True), group(1, 1, True)], 4),
    ([BELOW, 8] * 4, [group(0, 2, True), group(1, 2, True)], 6),
    ([WORD - (1 << 15), 2] * 4, [group(0, 4, True), group(1, 4, True)], 10),
    ([WORD - (1 << 15) - 1, 2] * 4, [group(0, 5, True), group(1, 5, True)], 14),
    ([1 << 15, 2] * 4, [group(0, 4), group(1, 4)], 10),
    ([1 << 31, 2] * 4, [group(0, 8), group(1, 8)], 20),
]


@pytest.mark.parametrize(("row", "form", "length"), CHOICES)
def test_the_first_format_that_holds_is_chosen(row: list[int], form: object, length: int) -> None:
    vocab = vocabulary(DEFAULT)
    zeros = [0] * DEFAULT.lanes
    assert choose_format(vocab, zeros, row) == form
    assert len(record_tokens(vocab, 0, zeros, row)) == length


def test_a_row_that_does_not_change_takes_one_token() -> None:
    vocab = vocabulary(DEFAULT)
    row = [1 << i for i in range(24, 32)]
    assert record_tokens(vocab, 3, row, row) == [Token(TokenClass.SAME, (3,))]


@pytest.mark.parametrize("config", list(PROFILES.values()), ids=lambda c: c.name)
def test_a_predicate_and_a_word_read_back(config: MachineConfig) -> None:
    mask = 0b10 % (config.full_mask + 1)
    slot, row = read_record(config, predicate_tokens(2, mask), [])
    assert (slot, sum(bit << i for i, bit in enumerate(row))) == (2, mask)
    tokens = word_tokens(config, 0x89ABCDEF, 32)
    assert len(tokens) == 32 // config.payload_bits
    word = sum(t.values[0] << (config.payload_bits * i) for i, t in enumerate(tokens))
    assert word == 0x89ABCDEF


def test_full_words_take_two_leads() -> None:
    tokens = record_tokens(vocabulary(NANO), 3, (0, 0), (0xDEADBEEF, 0x12345678))
    assert [t.cls.name for t in tokens] == ["GROUP", *["RAW"] * 4, "GROUP", *["RAW"] * 4]
