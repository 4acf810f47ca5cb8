"""Groups the operations of a basic block into machine blocks.

What counts is tokens: one for each machine block, and those of every result that must be sent back
because a later block reads it. Starting from one operation a group, the two groups whose union
saves most are joined, as long as the union fits the slots and no cycle arises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qgpu_isa.instruction import Slot

from qgpu_ptx.dependences import Dependences, find_dependences
from qgpu_ptx.fit_slots import allowed_slots, fit_slots
from qgpu_ptx.ir import BasicBlock, Op, Pred, Reg

Item = Reg | Pred
Weigh = Callable[[Op], int]
"""Tokens that sending back an operation's result takes."""


@dataclass(frozen=True)
class Group:
    """Operations that share a machine block: indices into the basic block, with their slots.

    `ends` says that the basic block's terminator is its branch.
    """

    places: dict[int, Slot]
    ends: bool

    @property
    def indices(self) -> list[int]:
        return sorted(self.places)


def pack_block(block: BasicBlock, live: set[Item], weigh: Weigh) -> tuple[list[Group], Dependences]:
    """Groups in an order in which they can run, and the dependences among operations."""
    packer = _Packer(block, live, weigh)
    packer.join_groups()
    return packer.ordered_groups(), packer.depends


def packed_tokens(
    block: BasicBlock, groups: list[Group], depends: Dependences, live: set[Item], weigh: Weigh
) -> int:
    """Tokens of one pass through the groups: machine blocks, and results sent back."""
    last = {op.dst: index for index, op in enumerate(block.ops)}
    tokens = len(groups)
    for group in groups:
        inside = {*group.places, *([len(block.ops)] if group.ends else [])}
        for index in group.places:
            op = block.ops[index]
            leaves = op.dst in live and last[op.dst] == index
            if op.dst is not None and (leaves or not depends.readers[index] <= inside):
                tokens += weigh(op)
    return tokens


class _Packer:
    def __init__(self, block: BasicBlock, live: set[Item], weigh: Weigh) -> None:
        self.block = block
        self.depends = find_dependences(block)
        self.end = len(block.ops)
        self.groups: dict[int, frozenset[int]] = {i: frozenset({i}) for i in range(self.end + 1)}
        self.home = list(range(self.end + 1))
        self._fits: dict[frozenset[int], dict[int, Slot] | None] = {}
        self._costs = [weigh(op) for op in block.ops]
        last: dict[Item, int] = {}
        for index, op in enumerate(block.ops):
            if op.dst is not None:
                last[op.dst] = index
        self._leaves = {i for item, i in last.items() if item in live}
        self._apart: list[set[int]] = [set() for _ in range(self.end + 1)]
        for x, y in self.depends.apart:
            self._apart[x].add(y)
            self._apart[y].add(x)
        # The slots that only one operation of a group can have.
        self._only = [
            frozenset(slots) if len(slots := allowed_slots(op)) == 1 else frozenset()
            for op in block.ops
        ] + [frozenset()]

    def join_groups(self) -> None:
        """Joins groups until no union saves a token."""
        while True:
            gains = []
            for maker in range(self.end):
                for reader in self.depends.readers[maker]:
                    a, b = self.home[maker], self.home[reader]
                    if a != b:
                        gains.append((self._gain(a, b), a, b))
            gains.sort(key=lambda gain: (-gain[0], gain[1], gain[2]))
            if not any(self._try(a, b) for _, a, b in dict.fromkeys(gains)):
                break
        self._join_unrelated()

    def _join_unrelated(self) -> None:
        joined = True
        while joined:
            joined = False
            homes = sorted(self.groups)
            for i, a in enumerate(homes):
                for b in homes[i + 1 :]:
                    if a in self.groups and b in self.groups and self._try(a, b):
                        joined = True

    def _gain(self, a: int, b: int) -> int:
        """Tokens that joining two groups saves."""
        union = self.groups[a] | self.groups[b]
        gain = 1
        for index in union:
            if index == self.end or index in self._leaves:
                continue
            readers = self.depends.readers[index]
            if readers and readers <= union and not readers <= self.groups[self.home[index]]:
                gain += self._costs[index]
        return gain

    def _try(self, a: int, b: int) -> bool:
        first, second = self.groups[a], self.groups[b]
        union = first | second
        if len(union - {self.end}) > len(Slot) or self._only[a] & self._only[b]:
            return False
        if any(not self._apart[index].isdisjoint(second) for index in first):
            return False
        if self._places(union) is None or self._cyclic(a, b):
            return False
        self.groups[a] = union
        self._only[a] |= self._only[b]
        del self.groups[b]
        for index in union:
            self.home[index] = a
        return True

    def _places(self, union: frozenset[int]) -> dict[int, Slot] | None:
        if union not in self._fits:
            self._fits[union] = self._find_places(union)
        return self._fits[union]

    def _find_places(self, union: frozenset[int]) -> dict[int, Slot] | None:
        indices = sorted(union - {self.end})
        number = {index: i for i, index in enumerate(indices)}
        makers = [
            {
                item: number[maker]
                for item, maker in self.depends.makers[index].items()
                if maker in number
            }
            for index in indices
        ]
        cond = None
        if self.end in union:
            for maker in self.depends.makers[self.end].values():
                cond = number.get(maker)
        places = fit_slots([self.block.ops[i] for i in indices], makers, cond)
        return None if places is None else {indices[i]: slot for i, slot in places.items()}

    def _successors(self) -> dict[int, set[int]]:
        result: dict[int, set[int]] = {home: set() for home in self.groups}
        for pairs in (self.depends.apart, self.depends.ordered):
            for x, y in pairs:
                if self.home[x] != self.home[y]:
                    result[self.home[x]].add(self.home[y])
        return result

    def _cyclic(self, a: int, b: int) -> bool:
        """Whether some third group must stand between the two."""
        successors = self._successors()
        for start, goal in ((a, b), (b, a)):
            work = [s for s in successors[start] if s != goal]
            seen = set(work)
            while work:
                node = work.pop()
                if node == goal:
                    return True
                for after in successors[node]:
                    if after not in seen:
                        seen.add(after)
                        work.append(after)
        return False

    def ordered_groups(self) -> list[Group]:
        """Groups in an order that respects all dependences, near program order."""
        successors = self._successors()
        waiting = dict.fromkeys(self.groups, 0)
        for after in successors.values():
            for home in after:
                waiting[home] += 1
        ready = sorted(home for home, count in waiting.items() if not count)
        result = []
        while ready:
            home = min(ready, key=lambda h: min(self.groups[h]))
            ready.remove(home)
            union = self.groups[home]
            places = self._places(union)
            assert places is not None
            result.append(Group(places, self.end in union))
            for follower in successors[home]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    ready.append(follower)
        assert len(result) == len(self.groups)
        return result
