"""The processes that run a launch together, each some of its CTAs: ranks 0 to `size` - 1.

All ranks do the same steps. What each of them finds goes to all of them, so that all come to the
same result, or stop for the same reason; rank 0 reports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Ranks(Protocol):
    """What a process knows of the others."""

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""

    @property
    def size(self) -> int:
        """How many there are."""

    def together(self, work: Callable[[], T]) -> list[T]:
        """Does work on every rank; what came of it on each, in their order, on all of them.

        Raises:
            RankError: another rank failed or was lost. A rank's own errors come out as they are.
        """


class OneProcess:
    """A launch that no other process takes part in."""

    rank = 0
    size = 1

    def together(self, work: Callable[[], T]) -> list[T]:
        """What came of work here."""
        return [work()]


ALONE = OneProcess()


def own_ctas(ranks: Ranks, ctas: int) -> range:
    """The CTAs that this rank runs: every `size`-th, so that neighbours are on different ranks."""
    return range(ranks.rank, ctas, ranks.size)
