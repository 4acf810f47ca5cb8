"""Records of live-outs, read back by a decoder that knows only docs/tokens.md."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qgpu_isa.errors import TokenError
from qgpu_isa.formats import (
    GroupFormat,
    RowFormat,
    choose_format,
    predicate_tokens,
    record_tokens,
    row_tokens,
    width_of,
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
        case TokenClass.ROW:
            lowest, pairs, signed, _ = tokens[0].values
            raws = [token.values[0] for token in tokens[1:]]
            assert len(raws) == pairs
            return slot, read_words(config.lanes, 2, lowest, raws, signed)
    assert len(tokens) == 1
    return slot, row


def read_words(count: int, size: int, lowest: int, raws: list[int], signed: int) -> list[int]:
    """Words of which a lead had the lowest bits, and RAW tokens `size` bits each."""
    read = []
    for i in range(count):
        word, width = lowest >> i & 1, 1
        for bits in raws:
            word |= (bits >> size * i & (1 << size) - 1) << width
            width += size
        if signed and word >> (width - 1):
            word -= 1 << width
        assert width >= 32 or word < 1 << width
        read.append(word % WORD)
    return read


def read_groups(config: MachineConfig, tokens: list[Token], old: Sequence[int]) -> list[int]:
    """The row that GROUP records leave behind."""
    size = min(4, config.lanes)
    row = list(old)
    rest = list(tokens)
    last = 0
    slot = rest[0].values[-1]
    while rest:
        assert not last
        lowest, nibbles, signed, _, group, last, _ = rest[0].values
        raws: list[int] = []
        for part in range(2):
            if part and nibbles <= 4:
                break
            lead = rest.pop(0)
            values = (lowest, nibbles, signed, part, group, last, slot)
            assert lead == Token(TokenClass.GROUP, values)
            while len(raws) < min(nibbles, 4 * part + 4):
                raws.append(rest.pop(0).values[0])
        row[size * group : size * group + size] = read_words(size, 4, lowest, raws, signed)
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
    ([9 + i for i in range(8)], RowFormat(2, False), 3),
    ([16376 + i for i in range(8)], TokenClass.LINEAR, 1),
    ([16384 + i for i in range(8)], [group(0, 4), group(1, 4)], 10),
    ([16384 + 4 * i for i in range(8)], TokenClass.LINEAR4, 1),
    ([65504 + 4 * i for i in range(8)], TokenClass.LINEAR4, 1),
    ([65536 + 4 * i for i in range(8)], [group(0, 4), group(1, 4)], 10),
    ([131072 + 4 * i for i in range(8)], [group(0, 5), group(1, 5)], 14),
    ([33 + 4 * i for i in range(8)], RowFormat(3, False), 4),
    ([1, 2] * 4, RowFormat(1, False), 2),
    ([7, 2] * 4, RowFormat(1, False), 2),
    ([8, 2] * 4, RowFormat(2, False), 3),
    ([511, 2] * 4, RowFormat(4, False), 5),
    ([512, 2] * 4, [group(0, 3), group(1, 3)], 8),
    ([512, 2, 2, 2, 1, 2, 3, 4], [group(0, 3), group(1, 1)], 6),
    ([512, 2, 2, 2, 1, 1, 0, 1], [group(0, 3), group(1, 0)], 5),
    ([0, 0, 0, 1, 0, 0, 0, 512], [group(0, 0), group(1, 3)], 5),
    ([0, 0, 0, 7, 0, 0, 0, 0], [group(0, 1)], 2),
    ([0, 0, 0, 31, 0, 0, 0, 0], [group(0, 1)], 2),
    ([0, 0, 0, 32, 0, 0, 0, 0], [group(0, 2)], 3),
    ([0, BELOW, 0, 0, 0, 0, 0, 0], [group(0, 0, True)], 1),
    ([0, 0, 0, 0, 0, 0, 0, 300], [group(1, 2)], 3),
    ([BELOW, 0] * 4, RowFormat(0, True), 1),
    ([BELOW, 3] * 4, RowFormat(1, True), 2),
    ([BELOW, 8] * 4, RowFormat(2, True), 3),
    ([WORD - 256, 255] * 4, RowFormat(4, True), 5),
    ([WORD - 256, 256] * 4, [group(0, 3, True), group(1, 3, True)], 8),
    ([WORD - (1 << 16), 2] * 4, [group(0, 4, True), group(1, 4, True)], 10),
    ([WORD - (1 << 16) - 1, 2] * 4, [group(0, 5, True), group(1, 5, True)], 14),
    ([1 << 16, 2] * 4, [group(0, 4), group(1, 4)], 10),
    ([1 << 28, 2] * 4, [group(0, 7), group(1, 7)], 18),
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


@pytest.mark.parametrize("config", list(PROFILES.values()), ids=lambda c: c.name)
def test_a_row_of_one_group_has_no_row_tokens(config: MachineConfig) -> None:
    vocab = vocabulary(config)
    row = Token(TokenClass.ROW, (1, 0, 0, 0))
    assert (TokenClass.ROW in vocab.classes) is (config.groups > 1)
    if config.groups > 1:
        assert vocab.decode(vocab.encode(row)) == row
    else:
        with pytest.raises(TokenError, match="has no ROW"):
            vocab.encode(row)


@given(st.lists(st.integers(0, 1 << 24), min_size=8, max_size=8), st.booleans())
def test_the_length_of_a_row_is_foretold(row: list[int], wide: bool) -> None:
    words = [1 + w if wide else 1 + w % 500 for w in row]
    form = choose_format(vocabulary(DEFAULT), [0] * 8, words)
    widths = [width_of(w, signed=False) for w in words]
    tokens = record_tokens(vocabulary(DEFAULT), 0, [0] * 8, words)
    if not isinstance(form, TokenClass):
        assert len(tokens) <= row_tokens(DEFAULT, max(widths))
