"""Machine blocks before registers have numbers, in their final order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qgpu_isa.instruction import Slot

from qgpu_ptx.dependences import Dependences
from qgpu_ptx.flow_graph import natural_loops
from qgpu_ptx.ir import (
    EXCLUSIVE_LOADS,
    BasicBlock,
    Edge,
    Function,
    Op,
    Origin,
    Pred,
    Reg,
    Terminator,
)
from qgpu_ptx.liveness import live_out
from qgpu_ptx.pack_blocks import Group, Weigh, pack_block

Item = Reg | Pred


@dataclass(frozen=True)
class PlacedOp:
    """An operation in its slot.

    `forwards` are operands that come from earlier slots of the block; `live` says that the
    result is sent back.
    """

    op: Op
    forwards: dict[Item, Slot]
    live: bool


@dataclass(frozen=True)
class VirtualBlock:
    """A machine block. Edges name blocks by label; `flag` is the slot that decides the branch."""

    label: str
    slots: dict[Slot, PlacedOp]
    terminator: Terminator
    flag: Slot | None = None

    def reads(self) -> set[Item]:
        """Registers and predicates read from the files."""
        found: set[Item] = set()
        for placed in self.slots.values():
            found |= {use for use in placed.op.uses() if use not in placed.forwards}
        if self.terminator.cond is not None and self.flag is None:
            found.add(self.terminator.cond.pred)
        return found

    def writes(self) -> Iterator[tuple[Item, bool]]:
        """Live results, and whether they are guarded (so that the old value may stay)."""
        for placed in self.slots.values():
            if placed.live and placed.op.dst is not None:
                yield placed.op.dst, placed.op.guard is not None

    def sources(self) -> tuple[str, ...]:
        """Where the operations come from, a text for each CUDA place or PTX line."""
        origins = [*(placed.op.origin for placed in self.slots.values()), self.terminator.origin]
        lines: dict[str, set[int]] = {}
        for origin in origins:
            if origin.line:
                place = origin.cuda or f"{origin.file}:{origin.line}"
                lines.setdefault(place, set()).update({origin.line} if origin.cuda else ())
        return tuple(
            f"{place} (PTX line{'s' * (len(found) > 1)} {', '.join(map(str, sorted(found)))})"
            if found
            else place
            for place, found in lines.items()
        )


def to_virtual_blocks(function: Function, weigh: Weigh) -> list[VirtualBlock]:
    """Packs every basic block and puts the machine blocks in order."""
    live = live_out(function)
    packed: dict[str, list[VirtualBlock]] = {}
    for block in function.blocks:
        groups, depends = pack_block(block, live[block.label], weigh)
        packed[block.label] = _blocks(block, groups, depends, live[block.label])
    result: list[VirtualBlock] = []
    stores = {b.store_of: b.label for b in function.blocks if b.store_of is not None}
    for label in block_order(function):
        if function.block(label).store_of is not None:
            continue
        chain = packed[label]
        if label in stores:
            # Winners of the exclusive load must finish before the losers load again, so all
            # that follows the load is numbered before it.
            at = next(
                i
                for i, b in enumerate(chain)
                if any(p.op.name in EXCLUSIVE_LOADS for p in b.slots.values())
            )
            chain = [*chain[:at], *chain[at + 1 :], *packed[stores[label]], chain[at]]
        result += chain
    return result


def _blocks(
    block: BasicBlock, groups: list[Group], depends: Dependences, live: set[Item]
) -> list[VirtualBlock]:
    last = {op.dst: i for i, op in enumerate(block.ops)}
    result = []
    for number, group in enumerate(groups):
        slots: dict[Slot, PlacedOp] = {}
        for index in group.indices:
            op = block.ops[index]
            forwards = {
                item: group.places[maker]
                for item, maker in depends.makers[index].items()
                if maker in group.places
            }
            outside = {r for r in depends.readers[index] if r not in group.places}
            if group.ends:
                outside.discard(len(block.ops))
            leaves = last.get(op.dst) == index and op.dst in live
            slots[group.places[index]] = PlacedOp(op, forwards, leaves or bool(outside))
        label = block.label if number == 0 else f"{block.label}+{number}"
        if group.ends:
            terminator, flag = block.terminator, _flag(block, group, depends)
        else:
            origin = next((p.op.origin for p in slots.values()), Origin())
            terminator = Terminator(Edge(f"{block.label}+{number + 1}"), origin=origin)
            flag = None
        result.append(VirtualBlock(label, slots, terminator, flag))
    return result


def _flag(block: BasicBlock, group: Group, depends: Dependences) -> Slot | None:
    for maker in depends.makers[len(block.ops)].values():
        if maker in group.places:
            return group.places[maker]
    return None


def block_order(function: Function) -> list[str]:
    """Reverse post-order in which a loop's blocks stand together, before what follows the loop.

    Lanes that wait for a later block are joined by those that still run earlier ones.
    """
    blocks = {b.label: b for b in function.blocks}
    loops = natural_loops(function)
    inside = {label: [head for head in loops if label in loops[head]] for label in blocks}
    order: list[str] = []
    seen: set[str] = set()

    def visit(label: str) -> None:
        seen.add(label)
        # Visited first means numbered last: leave loops first, then the way that is not taken.
        for target in sorted(blocks[label].terminator.targets, key=lambda t: len(inside[t])):
            if target not in seen:
                visit(target)
        order.append(label)

    visit(function.blocks[0].label)
    # Unreachable blocks are still there where the passes that drop them were left out.
    return _loops_together(order[::-1], {h: loops[h] for h in loops if h in seen}, inside)


def _loops_together(
    order: list[str], loops: dict[str, set[str]], inside: dict[str, list[str]]
) -> list[str]:
    """Moves each loop's blocks forward to its first one, the outer loops' first."""
    for head in sorted(loops, key=lambda h: len(inside[h])):
        members = loops[head]
        at = order.index(head)
        before = [label for label in order[:at] if label not in members]
        after = [label for label in order[at:] if label not in members]
        order = [*before, *(label for label in order if label in members), *after]
    return order
