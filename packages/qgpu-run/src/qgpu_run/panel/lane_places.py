"""Where a lane can be, narrowed down by what the model writes.

No token holds a lane's next block. But a block names all the places its lanes can go to, an EXEC
token says which lanes were at the smallest block, and a STOP token what the others wait for. So
for each lane there is a set of places, mostly of one. Nothing is computed: the condition of
a branch is known only where a record or an earlier predicate tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.program import Block, CondSource, Predicate, Status
from qgpu_isa.units import Alu


class Place(NamedTuple):
    """A lane's next block and its status."""

    block: int
    status: Status


Places = frozenset[Place]
"""The places where a lane can be; empty if what the model wrote fits no place."""


def gone(config: MachineConfig) -> Place:
    """The place of a lane that has exited."""
    return Place(config.rom_blocks - 1, Status.EXIT)


def holds(config: MachineConfig, pred: Predicate, predicates: Sequence[int]) -> int:
    """Lanes where a predicate operand holds."""
    value = config.full_mask if pred.index is None else predicates[pred.index]
    return value ^ config.full_mask if pred.negate else value


def known_flags(
    config: MachineConfig,
    block: Block,
    mask: int,
    predicates: Sequence[int],
    rows: Mapping[Slot, int],
) -> tuple[int, int]:
    """Lanes where the branch condition is known, and where it holds among them.

    Args:
        mask: lanes that run the block.
        predicates: as they were before the block.
        rows: the records of the block's comparisons so far, a lane mask each.
    """
    branch, full = block.branch, config.full_mask
    match branch.cond:
        case CondSource.ALWAYS:
            known, value = full, full
        case CondSource.PRED:
            known, value = full, predicates[branch.pred]
        case source:
            slot = Slot.A1 if source is CondSource.FLAG_A1 else Slot.A2
            code = block.slots.get(slot)
            if code is None or not INSTRUCTIONS[code.name].is_compare:
                known, value = full, 0
            elif slot in rows:
                unit = INSTRUCTIONS[code.name].unit
                selects = isinstance(unit, Alu) and unit.flag == "pred"
                known = mask if selects else mask & holds(config, code.pred, predicates)
                value = rows[slot]
            else:
                known = value = 0
    return known, value ^ full if branch.negate else value


def may_lose(config: MachineConfig, block: Block, mask: int, predicates: Sequence[int]) -> int:
    """Lanes that a lower lane can keep from their memory bank."""
    code = block.slots.get(Slot.MEM)
    if code is None:
        return 0
    active = mask & holds(config, code.pred, predicates)
    return active & (active - 1)


def places_after(
    config: MachineConfig,
    block: Block,
    index: int,
    mask: int,
    predicates: Sequence[int],
    rows: Mapping[Slot, int],
) -> dict[int, Places]:
    """Where each lane that ran block number `index` can be behind it; see `known_flags`."""
    branch = block.branch
    taken = _target(config, branch.taken, branch.taken_status)
    other = _target(config, branch.next, branch.next_status)
    known, value = known_flags(config, block, mask, predicates, rows)
    losing = may_lose(config, block, mask, predicates)
    found = {}
    for lane in range(config.lanes):
        bit = 1 << lane
        if not mask & bit:
            continue
        places = {taken if value & bit else other} if known & bit else {taken, other}
        if losing & bit:
            places.add(Place(index, Status.RUN))
        found[lane] = frozenset(places)
    return found


def _target(config: MachineConfig, block: int, status: Status) -> Place:
    return gone(config) if status is Status.EXIT else Place(block, status)


def places_stopped(lanes: Sequence[Places], status: Status, block: int) -> list[Places]:
    """The lanes of a pass that stopped for `status`, its smallest place being `block`."""
    order = (Status.WARP, Status.CTA, Status.EXIT)
    possible = order[order.index(status) :] if status in order else order
    kept = [
        frozenset(p for p in lane if p.status in possible and p.block >= block) for lane in lanes
    ]
    if status is not Status.EXIT:
        _only(kept, lambda place: place.block == block)
        _only(kept, lambda place: place.status is status)
    return kept


def _only(lanes: list[Places], wanted: Callable[[Place], bool]) -> None:
    """Some lane is at a wanted place: if just one can be, it is."""
    able = [i for i, lane in enumerate(lanes) if any(wanted(p) for p in lane)]
    if len(able) == 1:
        lanes[able[0]] = frozenset(p for p in lanes[able[0]] if wanted(p))


def places_running(
    lanes: Sequence[Places], block: int, mask: int, eligible: Collection[Status]
) -> list[Places]:
    """The lanes of a pass of which `mask` are about to run `block`: all that wait there.

    Args:
        eligible: statuses of lanes that could have been chosen.
    """
    found = []
    for lane, places in enumerate(lanes):
        if mask >> lane & 1:
            kept = frozenset(p for p in places if p.block == block and p.status in eligible)
        else:
            kept = frozenset(p for p in places if p.status not in eligible or p.block > block)
        found.append(kept)
    return found
