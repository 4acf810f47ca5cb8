"""Exchange between threads through hidden words of shared memory.

Words of `flags`, `pass` and `any` areas are zero outside the operations that use them, so that
threads which take no part count as zero. Shuffles alternate between two areas; the pass
`separate_exchanges` adds a barrier where one could be overwritten before it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qgpu_isa.machine_config import WARP_THREADS
from qgpu_isa.program import Status

from qgpu_ptx.ir import WORD, ZERO, Imm, Value
from qgpu_ptx.ir_builder import Condition
from qgpu_ptx.thread_values import thread

if TYPE_CHECKING:
    from qgpu_ptx.ast_to_ir import KernelLowering

ARRIVE = "arrive"
"""Begins the labels of blocks before which the lanes of a pass wait for each other."""

Combine = Callable[[Value, Value, int], Value]
"""(sum so far, a lane's word, the lane's number) to a new sum."""


class WarpExchange:
    """Scratch areas and barriers for one instruction; `cta` widens the scope to the CTA."""

    def __init__(self, kernel: KernelLowering, *, cta: bool = False) -> None:
        self.kernel = kernel
        self.b = kernel.builder
        self._cta = cta
        self._lanes = kernel.config.lanes
        self._threads = kernel.shape.threads

    @property
    def single_pass(self) -> bool:
        """Whether one pass holds the whole CTA, so that its lanes run in step."""
        return self._threads <= self._lanes

    @property
    def passes(self) -> int:
        """Passes that take part."""
        limit = self._threads if self._cta else min(self._threads, WARP_THREADS)
        return -(-limit // self._lanes)

    def barrier(self) -> None:
        """Waits for the other passes."""
        if not self.single_pass:
            self.b.barrier(Status.CTA if self._cta else Status.WARP)

    def arrive(self) -> None:
        """Waits until the lanes of a pass are together; see `keep_together`."""
        if not self.single_pass:
            label = self.b.label(ARRIVE)
            self.b.jump(label, Status.WARP)
            self.b.place(label)

    def area(self, name: str, words: int) -> int:
        """The byte address of an area of scratch words."""
        return self.kernel.variables.scratch(name, words)

    def thread_word(self, name: str) -> Value:
        """The address of this thread's word in an area with one for each thread."""
        return self.b.add(self.b.shl(thread(self.kernel), 2), self.area(name, self._threads))

    def group_start(self) -> Value:
        """The number of the first thread of this thread's warp (or CTA)."""
        if self._cta or self._threads <= WARP_THREADS:
            return ZERO
        return self.b.and_(thread(self.kernel), WORD - (WARP_THREADS - 1))

    def any(self, condition: Condition) -> Condition:
        """Whether the condition holds for any thread that takes part."""
        b = self.b
        if self.single_pass:
            return b.nonzero(b.ballot(condition))
        self.arrive()
        mine = self._pass_word()
        if condition is True:
            b.store(mine, Imm(1), space="shared")
        elif condition is not False:
            # Lanes of a pass store the same word: one is enough.
            b.store(mine, Imm(1), space="shared", guard=condition)
        self.barrier()
        result = self._combine_passes(lambda total, word, lane: b.or_(total, word))
        self.barrier()
        b.store(mine, ZERO, space="shared")
        return b.nonzero(result)

    def gather(self, word: Value, combine: Combine) -> Value:
        """Combines a word of every thread that takes part; others count as 0.

        Two levels: the lanes of each pass, then the passes. `combine` gets the thread's number
        within its warp for the first level, and 0 for sums that are already in place.
        """
        b = self.b
        self.arrive()
        mine = self.thread_word("flags")
        b.store(mine, word, space="shared")
        lanes = min(self._lanes, self._threads)
        first = b.and_(thread(self.kernel), WORD - (lanes - 1))
        base = b.add(b.shl(first, 2), self.area("flags", self._threads))
        total: Value = ZERO
        for lane in range(lanes):
            total = combine(total, b.load(base, 4 * lane, "shared"), lane)
        b.store(mine, ZERO, space="shared")
        if self.single_pass:
            return total
        return self._gather_passes(total, combine)

    def _gather_passes(self, part: Value, combine: Combine, *, reverse: bool = False) -> Value:
        mine = self._pass_word()
        self.b.store(mine, part, space="shared")
        self.barrier()
        total = self._combine_passes(combine, reverse=reverse)
        self.barrier()
        self.b.store(mine, ZERO, space="shared")
        return total

    def _pass_word(self) -> Value:
        """The address of this pass's word."""
        number = self.b.shr(thread(self.kernel), self._lanes.bit_length() - 1)
        return self.b.add(self.b.shl(number, 2), self._pass_area())

    def _pass_area(self) -> int:
        return self.area("passes", -(-self._threads // self._lanes))

    def _combine_passes(self, combine: Combine, *, reverse: bool = False) -> Value:
        first = self.b.shr(self.group_start(), self._lanes.bit_length() - 1)
        start = self.b.add(self.b.shl(first, 2), self._pass_area())
        total: Value = ZERO
        for index in sorted(range(self.passes), reverse=reverse):
            total = combine(total, self.b.load(start, 4 * index, "shared"), -1 - index)
        return total

    def ballot(self, condition: Condition) -> Value:
        """Bits of the threads (of the warp) for which the condition holds."""
        b = self.b
        self.arrive()
        votes = b.ballot(condition)
        if self.single_pass:
            return votes
        # The last pass comes first, so that most sums are small and fit short records.
        return self._gather_passes(
            votes,
            lambda total, word, lane: b.or_(b.shl(total, self._lanes), word),
            reverse=True,
        )

    def count(self, condition: Condition) -> Value:
        """The number of threads that take part for which the condition holds."""
        self.arrive()
        votes = self.b.op("popc", self.b.ballot(condition))
        if self.single_pass:
            return votes
        return self._gather_passes(votes, lambda total, word, lane: self.b.add(total, word))
