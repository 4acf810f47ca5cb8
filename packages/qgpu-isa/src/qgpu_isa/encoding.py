"""Bit fields of slots and branches in the program ROM; encode and decode from one table."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.machine_config import SLOT_BITS
from qgpu_isa.program import (
    Block,
    Branch,
    CondSource,
    DstKind,
    Operand,
    Predicate,
    SlotCode,
    Source,
    Status,
)


@dataclass(frozen=True)
class Field:
    """A bit field: `low` is the position of its lowest bit."""

    name: str
    low: int
    width: int

    def get(self, word: int) -> int:
        return word >> self.low & ((1 << self.width) - 1)

    def put(self, value: int) -> int:
        if not 0 <= value < 1 << self.width:
            raise ValueError(f"{value} does not fit field {self.name} of {self.width} bits")
        return value << self.low


def _layout(*fields: tuple[str, int]) -> dict[str, Field]:
    table: dict[str, Field] = {}
    low = 0
    for name, width in fields:
        table[name] = Field(name, low, width)
        low += width
    if low > SLOT_BITS:
        raise ValueError(f"{low} bits do not fit a ROM row of {SLOT_BITS}")
    return table


ROM_PARTS = 6
"""Parts of a block's ROM row: one per slot, then the branch."""

BRANCH_PART = 5

SLOT_FIELDS = _layout(
    ("imm", 32),
    ("op", 5),
    ("a_sel", 3),
    ("b_sel", 3),
    ("a_reg", 5),
    ("b_reg", 5),
    ("dst_kind", 2),
    ("dst", 5),
    ("pred", 3),
    ("pred_negate", 1),
)
"""Fields of a slot. Predicates, as operand and as destination, are numbered from 1 here: 0 means
always true, so an empty row is inert."""

BRANCH_FIELDS = _layout(
    ("taken", 7),
    ("taken_status", 2),
    ("next", 7),
    ("next_status", 2),
    ("cond", 2),
    ("cond_pred", 3),
    ("cond_negate", 1),
    ("trap", 1),
)
"""Fields of a branch. `cond_pred` holds the index + 1, as a slot's `pred`."""


def encode_slot(code: SlotCode) -> int:
    """The slot's ROM row, `SLOT_BITS` wide."""
    values = {
        "imm": code.imm,
        "op": INSTRUCTIONS[code.name].opcode,
        "a_sel": int(code.a.source),
        "b_sel": int(code.b.source),
        "a_reg": code.a.register,
        "b_reg": code.b.register,
        "dst_kind": int(code.dst),
        "dst": code.dst_index + (code.dst == DstKind.PRED),
        "pred": 0 if code.pred.index is None else code.pred.index + 1,
        "pred_negate": int(code.pred.negate),
    }
    return sum(SLOT_FIELDS[name].put(value) for name, value in values.items())


def decode_slot(slot: Slot, row: int) -> SlotCode | None:
    """The instruction of a ROM row; None for an empty row.

    Raises:
        ValueError: the opcode means nothing in this slot.
    """
    get = {name: field.get(row) for name, field in SLOT_FIELDS.items()}
    if get["op"] == 0:
        return None
    instruction = INSTRUCTIONS.decode(slot, get["op"])
    if instruction is None:
        raise ValueError(f"opcode {get['op']} means nothing in slot {slot.name}")
    return SlotCode(
        name=instruction.name,
        a=Operand(Source(get["a_sel"]), get["a_reg"]),
        b=Operand(Source(get["b_sel"]), get["b_reg"]),
        imm=get["imm"],
        dst=DstKind(get["dst_kind"]),
        dst_index=get["dst"] - (get["dst_kind"] == DstKind.PRED),
        pred=Predicate(get["pred"] - 1 if get["pred"] else None, bool(get["pred_negate"])),
    )


def encode_branch(branch: Branch) -> int:
    """The branch's ROM row."""
    values = {
        "taken": _encode_target(branch.taken, branch.taken_status, "taken"),
        "taken_status": int(branch.taken_status),
        "next": _encode_target(branch.next, branch.next_status, "next"),
        "next_status": int(branch.next_status),
        "cond": int(branch.cond),
        "cond_pred": branch.pred + 1 if branch.cond == CondSource.PRED else 0,
        "cond_negate": int(branch.negate),
        "trap": int(branch.trap),
    }
    return sum(BRANCH_FIELDS[name].put(value) for name, value in values.items())


def _encode_target(block: int, status: Status, field: str) -> int:
    """A target's field: lanes that exit rank behind all others, so theirs is all ones."""
    return (1 << BRANCH_FIELDS[field].width) - 1 if status == Status.EXIT else block


def _decode_target(value: int, status: int) -> int:
    return 0 if status == Status.EXIT else value


def decode_branch(row: int) -> Branch:
    """The branch of a ROM row."""
    get = {name: field.get(row) for name, field in BRANCH_FIELDS.items()}
    return Branch(
        cond=CondSource(get["cond"]),
        pred=max(0, get["cond_pred"] - 1),
        negate=bool(get["cond_negate"]),
        taken=_decode_target(get["taken"], get["taken_status"]),
        taken_status=Status(get["taken_status"]),
        next=_decode_target(get["next"], get["next_status"]),
        next_status=Status(get["next_status"]),
        trap=bool(get["trap"]),
    )


def encode_block(block: Block) -> tuple[int, ...]:
    """The block's ROM parts: one row per slot (0 for an empty slot), then the branch's."""
    rows = [encode_slot(block.slots[s]) if s in block.slots else 0 for s in Slot]
    return (*rows, encode_branch(block.branch))


def decode_block(rows: tuple[int, ...]) -> Block:
    """The block whose ROM parts these are."""
    slots = {}
    for slot in Slot:
        code = decode_slot(slot, rows[slot])
        if code is not None:
            slots[slot] = code
    return Block(slots=slots, branch=decode_branch(rows[BRANCH_PART]))
