"""What keeps rows short: reciprocals from a table, relays within a block, suitable registers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qgpu_isa import DEFAULT, NANO, SMALL
from qgpu_isa.instruction import Slot
from qgpu_ptx.allocate_registers import allocate_registers
from qgpu_ptx.expansions.reciprocal import reciprocals, table_entries
from qgpu_ptx.fit_slots import fit_slots
from qgpu_ptx.ir import EXIT, ZERO, Address, Imm, Op, Reg, Special, Terminator
from qgpu_ptx.row_costs import Row
from qgpu_ptx.virtual_blocks import PlacedOp, VirtualBlock

words = st.integers(0, 32).flatmap(lambda bits: st.integers(0, (1 << bits) - 1))


def divide(x: int, y: int, entries: int) -> tuple[int, int, int]:
    """Quotient, rest and rounds as `divide_by_reciprocal` finds them, with words' limits."""
    table = reciprocals(entries)
    shift = 32 - (entries - 1).bit_length() - (32 - (y | entries - 1).bit_length())
    quotient, rest, rounds = 0, x, 0
    while not rounds or rest >= y:
        digit = (rest * table[y >> shift] >> 32) >> shift
        assert digit * y <= rest
        rest -= digit * y
        quotient += digit + (rest >= y)
        rest = min(rest, (rest - y) % 2**32)
        rounds += 1
    return quotient, rest, rounds


@pytest.mark.parametrize("config", [DEFAULT, SMALL, NANO], ids=lambda config: config.name)
@given(x=words, y=words.filter(bool))
def test_digits_of_the_table_are_never_too_large(config: object, x: int, y: int) -> None:
    entries = table_entries(config)  # type: ignore[arg-type]
    quotient, rest, rounds = divide(x, y, entries)
    assert (quotient, rest) == divmod(x, y)
    if y < entries // 2:
        assert rounds == 1


def test_the_result_of_a0_reaches_a2_through_a_free_slot() -> None:
    a, b, c = Reg(1), Reg(2), Reg(3)
    ops = [
        Op("add", a, Special.TID, Imm(4)),
        Op("setges", b, Imm(31), a),
        Op("add", c, b, a),
    ]
    makers = [{}, {a: 0}, {b: 1, a: 0}]
    assert fit_slots(ops, makers) == {0: Slot.A0, 1: Slot.A1, 2: Slot.A2}
    # With the multiplier taken too, there is no way left.
    product = Op("mullo", Reg(4), Special.TID, Imm(3))
    assert fit_slots([*ops, product], [*makers, {}]) is None


def _block(label: str, op: Op) -> VirtualBlock:
    slot = Slot.A1 if op.address is None else Slot.MEM
    return VirtualBlock(label, {slot: PlacedOp(op, {}, True)}, Terminator(EXIT))


def test_registers_are_chosen_by_what_stands_in_them() -> None:
    """Flags apart from words; equal values together; what always is the same, alone."""
    word, again, flag, lasting = (Reg(n) for n in range(4))
    load = Address("lea2", Special.TID, ZERO)
    blocks = [
        _block("a", Op("ld", word, address=load)),
        _block("b", Op("seteq", flag, Special.TID, ZERO)),
        _block("c", Op("ld", again, address=load)),
        _block("d", Op("mullo", lasting, Special.TID, Imm(20))),
    ]
    rows = {flag: Row(1), lasting: Row(300)}
    numbers = allocate_registers(blocks, DEFAULT, rows).numbers
    assert numbers[word] == numbers[again]
    assert len({numbers[r] for r in (word, flag, lasting)}) == 3


def test_registers_of_a_chain_as_long_as_the_program() -> None:
    chain = [Op("mullo", Reg(1), Special.TID, Imm(3))]
    chain += [Op("add", Reg(n), Reg(n - 1), Special.TID) for n in range(2, 2000)]
    blocks = [_block(str(n), op) for n, op in enumerate(chain)]
    assert allocate_registers(blocks, DEFAULT, {}).numbers
