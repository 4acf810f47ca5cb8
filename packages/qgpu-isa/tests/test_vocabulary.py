"""Token ids and bit codes."""

import random

import pytest
from qgpu_isa.errors import TokenError
from qgpu_isa.machine_config import PROFILES, MachineConfig
from qgpu_isa.token_docgen import CLASS_TEXT, FAULT_TEXT
from qgpu_isa.vocabulary import CLASS_BITS, Fault, Token, TokenClass, vocabulary

CONFIGS = list(PROFILES.values())


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.name)
def test_ids_and_tokens_correspond(config: MachineConfig) -> None:
    vocab = vocabulary(config)
    ids = set(random.Random(0).sample(range(vocab.size), 1500)) | {0, vocab.size - 1}
    for cls in TokenClass:
        ids |= {vocab.range_of(cls).start, vocab.range_of(cls).stop - 1}
    for token_id in ids:
        token = vocab.decode(token_id)
        assert vocab.encode(token) == token_id
        assert token_id in vocab.range_of(token.cls)
    assert len({vocab.decode(i) for i in ids}) == len(ids)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.name)
def test_classes_fill_the_ids_without_gaps(config: MachineConfig) -> None:
    vocab = vocabulary(config)
    end = 0
    for cls in TokenClass:
        assert vocab.range_of(cls).start == end
        end = vocab.range_of(cls).stop
    assert end == vocab.size
    assert len(TokenClass) <= 1 << CLASS_BITS


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.name)
def test_payload_codes_are_distinct_within_a_class(config: MachineConfig) -> None:
    vocab = vocabulary(config)
    for cls in TokenClass:
        tokens = [vocab.decode(i) for i in list(vocab.range_of(cls))[:3000]]
        codes = [vocab.payload(token) for token in tokens]
        assert len(set(codes)) == len(codes)
        assert all(0 <= code < 1 << vocab.payload_code_bits for code in codes)
        for field in vocab.fields[cls]:
            bits = vocab.field_bits(cls, field.name)
            place = [f.name for f in vocab.fields[cls]].index(field.name)
            for token, code in zip(tokens, codes, strict=True):
                value = sum((code >> bit & 1) << i for i, bit in enumerate(bits))
                assert value == token.values[place]


def test_wrong_tokens_are_refused() -> None:
    vocab = vocabulary(CONFIGS[0])
    with pytest.raises(TokenError, match="field lanes must be below 4"):
        vocab.encode(Token(TokenClass.MASK, (4, 0)))
    with pytest.raises(TokenError, match="is not one of the machine's"):
        vocab.decode(vocab.size)
    with pytest.raises(TokenError, match="END has no field x"):
        vocab.field_bits(TokenClass.END, "x")


def test_every_class_and_fault_is_documented() -> None:
    assert set(CLASS_TEXT) == set(TokenClass)
    assert set(FAULT_TEXT) == set(Fault)
