"""Records of live-outs, read back by a decoder that knows only docs/tokens.md."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qgpu_isa.formats import choose_format, predicate_tokens, record_tokens, word_tokens
from qgpu_isa.machine_config import DEFAULT, NANO, PROFILES, MachineConfig
from qgpu_isa.testing import configs, words
from qgpu_isa.vocabulary import Token, TokenClass, Width, vocabulary

WORD = 1 << 32


def read_record(config: MachineConfig, tokens: list[Token]) -> tuple[int, list[int]]:
    """Slot and row of a record."""
    lanes = range(config.lanes)
    lead = tokens[0]
    *values, slot = lead.values
    if lead.cls is not TokenClass.WIDE:
        assert len(tokens) == 1
        row = {
            "BITS": lambda v: [v >> i & 1 for i in lanes],
            "UNIFORM": lambda v: [v for _ in lanes],
            "LINEAR": lambda v: [v + i for i in lanes],
            "LINEAR4": lambda v: [v + 4 * i for i in lanes],
        }[lead.cls.name](values[0])
        return slot, row
    bits = position = 0
    parts = 0
    for index, token in enumerate(tokens):
        if token.cls is TokenClass.WIDE:
            assert token.values == (parts, values[1], slot)
            assert index % 5 == 0
            parts += 1
        else:
            bits |= token.values[0] << position
            position += config.payload_bits
    if values[1] == Width.U32:
        return slot, [bits] * config.lanes
    width = (4, 8, 16, 32)[values[1]]
    row = [bits >> (width * i) & ((1 << width) - 1) for i in lanes]
    if width == 16:
        row = [word - (1 << 16) if word >> 15 else word for word in row]
    return slot, [word % WORD for word in row]


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
    row = data.draw(rows(config))
    vocab = vocabulary(config)
    tokens = record_tokens(vocab, slot, row)
    assert all(vocab.decode(vocab.encode(token)) == token for token in tokens)
    assert read_record(config, tokens) == (slot, list(row))


LENGTHS = [
    # The row over 8 lanes and the length of its record on the default machine.
    ([0, 1] * 4, TokenClass.BITS, 1),
    ([2047] * 8, TokenClass.UNIFORM, 1),
    ([2048] * 8, Width.U32, 3),
    ([8 + i for i in range(8)], TokenClass.LINEAR, 1),
    ([9 + i for i in range(8)], Width.W8, 5),
    ([2040 + i for i in range(8)], TokenClass.LINEAR, 1),
    ([2048 + i for i in range(8)], Width.W16, 10),
    ([32 + 4 * i for i in range(8)], TokenClass.LINEAR4, 1),
    ([33 + 4 * i for i in range(8)], TokenClass.LINEAR4, 1),
    ([36 + 4 * i for i in range(8)], Width.W8, 5),
    ([15, 2] * 4, Width.W4, 3),
    ([16, 2] * 4, Width.W8, 5),
    ([256, 2] * 4, Width.W16, 10),
    ([WORD - 1, 2] * 4, Width.W16, 10),
    ([WORD - (1 << 15), 2] * 4, Width.W16, 10),
    ([WORD - (1 << 15) - 1, 2] * 4, Width.W32, 20),
    ([1 << 15, 2] * 4, Width.W32, 20),
]


@pytest.mark.parametrize(("row", "form", "length"), LENGTHS)
def test_the_first_format_that_holds_is_chosen(row: list[int], form: object, length: int) -> None:
    vocab = vocabulary(DEFAULT)
    chosen = choose_format(DEFAULT, tuple(row), vocab.small_bits)
    assert chosen is form
    assert len(record_tokens(vocab, 0, tuple(row))) == length


@pytest.mark.parametrize("config", list(PROFILES.values()), ids=lambda c: c.name)
def test_a_predicate_and_a_word_read_back(config: MachineConfig) -> None:
    mask = 0b10 % (config.full_mask + 1)
    slot, row = read_record(config, predicate_tokens(2, mask))
    assert (slot, sum(bit << i for i, bit in enumerate(row))) == (2, mask)
    tokens = word_tokens(config, 0x89ABCDEF, 32)
    assert len(tokens) == 32 // config.payload_bits
    word = sum(t.values[0] << (config.payload_bits * i) for i, t in enumerate(tokens))
    assert word == 0x89ABCDEF


def test_nano_cuts_a_row_of_full_words_into_two_parts() -> None:
    tokens = record_tokens(vocabulary(NANO), 3, (0xDEADBEEF, 0x12345678))
    assert [t.cls.name for t in tokens] == ["WIDE", *["RAW"] * 4, "WIDE", *["RAW"] * 4]
