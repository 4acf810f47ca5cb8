"""Every instruction against the oracle, and the table that holds them."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import ORACLE
from qgpu_isa.instruction import INSTRUCTIONS, Instruction, InstructionTable, Slot
from qgpu_isa.random_slots import CORNER_WORDS
from qgpu_isa.testing import words
from qgpu_isa.units import Alu

NAMES = [i.name for i in INSTRUCTIONS]


def test_every_mnemonic_has_an_oracle() -> None:
    assert set(ORACLE) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_semantics_agree_with_the_oracle_at_corners(name: str) -> None:
    semantics = INSTRUCTIONS[name].semantics
    for a, b, flag in itertools.product(CORNER_WORDS, CORNER_WORDS, (False, True)):
        assert semantics(a, b, flag) == ORACLE[name](a, b, flag), (a, b, flag)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(a=words(), b=words(), flag=st.booleans())
def test_semantics_agree_with_the_oracle(name: str, a: int, b: int, flag: bool) -> None:
    result = INSTRUCTIONS[name].semantics(a, b, flag)
    assert result == ORACLE[name](a, b, flag)
    assert 0 <= result < 1 << 32


def test_comparisons_give_truth_values_and_nothing_else_is_a_comparison() -> None:
    assert {i.name for i in INSTRUCTIONS if i.is_compare} == {
        n for n in NAMES if n.startswith("set")
    }


def test_each_slot_decodes_its_own_unit() -> None:
    assert INSTRUCTIONS.decode(Slot.A0, 1) is INSTRUCTIONS["add"]
    assert INSTRUCTIONS.decode(Slot.MEM, 1) is INSTRUCTIONS["ld"]
    assert INSTRUCTIONS.decode(Slot.X, 1) is INSTRUCTIONS["mullo"]
    assert INSTRUCTIONS.decode(Slot.X, 31) is None


@pytest.mark.parametrize(
    ("name", "opcode", "doc", "message"),
    [
        ("add", 2, "text", "defined twice"),
        ("other", 1, "text", "share opcode 1"),
        ("other", 0, "text", r"not in 1\.\.31"),
        ("other", 32, "text", r"not in 1\.\.31"),
        ("other", 2, "", "no documentation"),
    ],
)
def test_the_table_refuses(name: str, opcode: int, doc: str, message: str) -> None:
    table = InstructionTable()

    def make(name: str, opcode: int, doc: str) -> Instruction:
        return Instruction(name, opcode, (Slot.A0,), Alu("sum"), lambda a, b, f: a, doc)

    table.register(make("add", 1, "text"))
    with pytest.raises(ValueError, match=message):
        table.register(make(name, opcode, doc))
