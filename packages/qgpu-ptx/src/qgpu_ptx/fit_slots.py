"""Whether a few operations can share a machine block, and in which slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.program import FORWARDS

from qgpu_ptx.ir import STORES, ZERO, Op, Pred, Reg
from qgpu_ptx.simplify_op import COMPARES

FORWARDED = {slot: frozenset(sources.values()) for slot, sources in FORWARDS.items()}
RELAYS = {Slot.X: "shl", Slot.A1: "add"}
"""Slots that can hand the result of A0 on to A2, which does not see it, and what does it there."""
_ALU = INSTRUCTIONS["add"].slots


def allowed_slots(op: Op) -> tuple[Slot, ...]:
    """Slots that an operation may take, apart from what its operands demand."""
    return _ALU if op.name == "mov" else INSTRUCTIONS[op.name].slots


def takes_address(op: Op) -> bool:
    """Whether an access may take its address from another operation's result unchanged."""
    return op.address is not None and op.address.name == "add" and op.address.b == ZERO


def fit_slots(
    ops: Sequence[Op], makers: Sequence[Mapping[Reg | Pred, int]], cond_maker: int | None = None
) -> dict[int, Slot] | None:
    """A slot for every operation (by position), None if there is no way.

    `ops` are in program order; `makers` gives for each the position of the operation in `ops`
    that makes a register or predicate it reads. `cond_maker` is the position of the comparison
    that the block's branch takes its flag from.
    """
    if len(ops) > len(Slot):
        return None
    return _assign(ops, makers, cond_maker, 0, {}, set())


def _assign(
    ops: Sequence[Op],
    makers: Sequence[Mapping[Reg | Pred, int]],
    cond_maker: int | None,
    index: int,
    places: dict[int, Slot],
    taken: set[Slot],
) -> dict[int, Slot] | None:
    if index == len(ops):
        fits = not _relayed(makers, places) or any(slot not in taken for slot in RELAYS)
        return dict(places) if fits else None
    op = ops[index]
    for slot in allowed_slots(op):
        needed = {slot}
        if slot is Slot.MEM and not _address_forwarded(op, makers[index], places):
            needed.add(Slot.A0)
        if needed & taken or not _operands_reach(ops, index, makers[index], places, slot):
            continue
        if index == cond_maker and (slot is Slot.A0 or op.guard is not None):
            continue
        places[index] = slot
        found = _assign(ops, makers, cond_maker, index + 1, places, taken | needed)
        if found is not None:
            return found
        del places[index]
    return None


def _reaches(maker: Slot, reader: Slot) -> bool:
    return maker in FORWARDED[reader] or (maker, reader) == (Slot.A0, Slot.A2)


def _relayed(makers: Sequence[Mapping[Reg | Pred, int]], places: Mapping[int, Slot]) -> bool:
    """Whether an operation in A2 reads what one in A0 makes."""
    return any(
        slot is Slot.A2 and any(places.get(maker) is Slot.A0 for maker in makers[index].values())
        for index, slot in places.items()
    )


def _address_forwarded(op: Op, makers: Mapping[Reg | Pred, int], places: dict[int, Slot]) -> bool:
    if not takes_address(op) or op.address is None or not isinstance(op.address.a, Reg):
        return False
    maker = makers.get(op.address.a)
    return maker is not None and places[maker] is Slot.A0


def _operands_reach(
    ops: Sequence[Op],
    index: int,
    makers: Mapping[Reg | Pred, int],
    places: dict[int, Slot],
    slot: Slot,
) -> bool:
    op = ops[index]
    for item, maker in makers.items():
        source = ops[maker]
        if source.guard is not None and source.guard != op.guard:
            return False
        if isinstance(item, Pred):
            # A selection in A2 can follow the comparison in A1; nothing else sees it in time.
            selects = op.name == "sel" and slot is Slot.A2 and places[maker] is Slot.A1
            if not selects or source.name not in (*COMPARES, "setp"):
                return False
        elif op.address is not None:
            address_only = op.address.a == item and item not in (op.address.b, _data(op))
            if not (address_only and _address_forwarded(op, makers, places)):
                return False
        elif not _reaches(places[maker], slot) or (op.dst == item and op.guard is not None):
            return False
    return True


def _data(op: Op) -> Reg | None:
    return op.b if op.name in STORES and isinstance(op.b, Reg) else None
