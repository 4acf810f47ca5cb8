"""Computes a value again where it is needed, if that takes fewer tokens than to keep it.

A result that another machine block reads is sent back, at up to some twenty tokens; the slots of
the reader's block are often free. So operations are repeated in front of their readers, loads too,
one after the other, as long as the basic block gets cheaper by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from qgpu_ptx.dependences import Dependences, may_meet
from qgpu_ptx.ir import BasicBlock, Function, Op, Pred, Reg
from qgpu_ptx.liveness import live_out
from qgpu_ptx.pack_blocks import Group, Weigh, pack_block, packed_tokens
from qgpu_ptx.passes.rename_locals import rename_terminator, rename_uses

Item = Reg | Pred
MAX_OPS = 64
"""Longer blocks are left alone: trying takes time."""
CHAIN = 3
"""How many operations are repeated for one reader."""


def recompute(function: Function, weigh: Weigh) -> Function:
    """The function with operations repeated where that saves tokens."""
    live = live_out(function)
    worker = _Worker(weigh, function.fresh())
    blocks = tuple(worker.improve(block, live[block.label]) for block in function.blocks)
    return replace(function, blocks=blocks)


@dataclass(frozen=True)
class _Packed:
    block: BasicBlock
    groups: list[Group]
    depends: Dependences
    tokens: int


class _Worker:
    def __init__(self, weigh: Weigh, fresh: int) -> None:
        self._weigh_first = weigh
        self._fresh = fresh
        self._costs: dict[Item | None, int] = {}

    def _weigh(self, op: Op) -> int:
        """Copies cost what the first one does."""
        if op.dst in self._costs:
            return self._costs[op.dst]
        return self._weigh_first(op)

    def _pack(self, block: BasicBlock, live: set[Item]) -> _Packed:
        groups, depends = pack_block(block, live, self._weigh)
        return _Packed(
            block, groups, depends, packed_tokens(block, groups, depends, live, self._weigh)
        )

    def improve(self, block: BasicBlock, live: set[Item]) -> BasicBlock:
        if not 1 < len(block.ops) <= MAX_OPS:
            return block
        best = self._pack(block, live)
        index = 0
        while index < len(best.block.ops):
            better = self._try(best, live, index)
            if better is None:
                index += 1
            else:
                best = better
        return best.block

    def _try(self, packed: _Packed, live: set[Item], index: int) -> _Packed | None:
        """A cheaper block in which operation `index` is repeated, None if there is none."""
        readers = _readers_elsewhere(packed, live, index)
        if not readers:
            return None
        for chain in _chains(packed, index):
            block = self._repeat(packed.block, chain, readers, live)
            if block is not None:
                found = self._pack(block, live)
                if found.tokens < packed.tokens:
                    return found
        return None

    def _repeat(
        self, block: BasicBlock, chain: list[int], groups: list[list[int]], live: set[Item]
    ) -> BasicBlock | None:
        """The block with a chain of operations repeated before the readers of its last one."""
        copies: dict[int, list[Op]] = {}
        names: dict[int, dict[Item, Item]] = {}
        for readers in groups:
            if not all(_lasts(block, maker, readers[0]) for maker in chain):
                return None
            fresh: dict[Item, Item] = {}
            made = []
            for maker in chain:
                op = rename_uses(block.ops[maker], fresh)
                assert op.dst is not None
                new = type(op.dst)(self._fresh)
                self._fresh += 1
                self._costs[new] = self._weigh(op)
                fresh[op.dst] = new
                made.append(replace(op, dst=new))
            copies[readers[0]] = made
            last = block.ops[chain[-1]].dst
            assert last is not None
            for reader in readers:
                names[reader] = {last: fresh[last]}
        ops: list[Op] = []
        for index, op in enumerate(block.ops):
            ops += copies.get(index, [])
            ops.append(rename_uses(op, names.get(index, {})))
        end = len(block.ops)
        ops += copies.get(end, [])
        terminator = rename_terminator(block.terminator, names.get(end, {}))
        return _without_unread(replace(block, ops=tuple(ops), terminator=terminator), chain, live)


def _readers_elsewhere(packed: _Packed, live: set[Item], index: int) -> list[list[int]]:
    """Readers outside an operation's machine block, by their own; none if it must leave anyway."""
    op = packed.block.ops[index]
    if op.dst is None or op.dst in live or not _repeatable(op):
        return []
    if sum(other.dst == op.dst for other in packed.block.ops) > 1:
        return []
    own = next(g for g in packed.groups if index in g.places)
    end = len(packed.block.ops)
    readers = packed.depends.readers[index]
    result = []
    for group in packed.groups:
        if group is not own:
            here = sorted({*group.places, *([end] if group.ends else [])} & readers)
            if here:
                result.append(here)
    return result


def _repeatable(op: Op) -> bool:
    return op.guard is None and not (op.has_effect or op.stays) and op.dst not in set(op.uses())


def _chains(packed: _Packed, index: int) -> Iterator[list[int]]:
    """The operation alone, then with those of its machine block that feed it."""
    own = next(g for g in packed.groups if index in g.places)
    chain = [index]
    yield chain
    while len(chain) < CHAIN:
        makers = {
            maker
            for at in chain
            for maker in packed.depends.makers[at].values()
            if maker in own.places and maker not in chain
        }
        if not makers or not all(_repeatable(packed.block.ops[maker]) for maker in makers):
            return
        chain = sorted({*chain, *makers})
        yield chain


def _lasts(block: BasicBlock, maker: int, reader: int) -> bool:
    """Whether an operation gives the same in front of a later one."""
    op = block.ops[maker]
    for other in block.ops[maker + 1 : reader]:
        if other.dst is not None and (other.dst in op.uses() or other.dst == op.dst):
            return False
        if op.is_memory and other.has_effect and may_meet(op, other):
            return False
    return True


def _without_unread(block: BasicBlock, chain: list[int], live: set[Item]) -> BasicBlock:
    """Drops the operations of the chain that nothing reads any more."""
    ops = list(block.ops)
    end = block.terminator.cond
    # Copies stand behind the chain, so its indices still hold.
    for index in reversed(chain):
        dst = ops[index].dst
        read: set[Item | None] = {use for op in ops for use in op.uses()}
        if dst not in read | live and (end is None or end.pred != dst):
            del ops[index]
    return replace(block, ops=tuple(ops))
