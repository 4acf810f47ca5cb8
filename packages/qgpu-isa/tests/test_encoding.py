"""The program ROM's bit fields."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qgpu_isa.canonical import canonical_branch
from qgpu_isa.encoding import (
    BRANCH_FIELDS,
    SLOT_FIELDS,
    decode_block,
    decode_slot,
    encode_block,
    encode_branch,
    encode_slot,
)
from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.machine_config import DEFAULT, SLOT_BITS, MachineConfig
from qgpu_isa.program import Block, Branch, CondSource, SlotCode
from qgpu_isa.testing import blocks, configs, slot_codes


@pytest.mark.parametrize("layout", [SLOT_FIELDS, BRANCH_FIELDS])
def test_fields_do_not_overlap_and_fit(layout: dict) -> None:
    used = 0
    for field in layout.values():
        bits = ((1 << field.width) - 1) << field.low
        assert not used & bits, field.name
        used |= bits
    assert used < 1 << SLOT_BITS


def test_no_two_instructions_of_a_slot_share_a_code() -> None:
    for slot in Slot:
        rows = [encode_slot(SlotCode(i.name)) for i in INSTRUCTIONS if slot in i.slots]
        assert len(rows) == len(set(rows))
        assert 0 not in rows


@settings(deadline=None)
@given(data=st.data(), config=configs(), slot=st.sampled_from(Slot))
def test_decoding_a_slot_gives_it_back(
    data: st.DataObject, config: MachineConfig, slot: Slot
) -> None:
    code = data.draw(slot_codes(config, slot))
    assert decode_slot(slot, encode_slot(code)) == code


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(blocks(DEFAULT, 128))
def test_decoding_a_block_gives_it_back(block: Block) -> None:
    rows = encode_block(block)
    assert all(0 <= row < 1 << SLOT_BITS for row in rows)
    back = decode_block(rows)
    assert back.slots == block.slots
    assert encode_branch(back.branch) == encode_branch(block.branch)
    if block.branch.cond is CondSource.PRED:
        assert canonical_branch(back.branch) == canonical_branch(block.branch)


def test_an_empty_block_is_all_zero() -> None:
    assert encode_block(Block()) == (0,) * 6
    assert decode_block((0,) * 6) == Block(branch=Branch())


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="does not fit field imm of 32 bits"):
        encode_slot(SlotCode("add", imm=1 << 32))
    with pytest.raises(ValueError, match="opcode 31 means nothing in slot A0"):
        decode_slot(Slot.A0, SLOT_FIELDS["op"].put(31))
