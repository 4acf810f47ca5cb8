"""Ranks as a torch.distributed group: started by `torchrun`, or by `local_ranks`.

What they exchange is small, and lies on the host: the group is gloo's on every device.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from qgpu_run.command_errors import message_and_status
from qgpu_run.errors import RankError

T = TypeVar("T")

WAIT = timedelta(days=7)
"""How long a rank waits for one that still computes; one that was lost is noticed at once."""

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What a launcher such as `torchrun` tells each process."""


@dataclass(frozen=True)
class Place:
    """Where a process stands in its group, and among those on its machine.

    Attributes:
        rank, size: in the group.
        local_rank, local_size: on the machine.
        meeting: where the group meets, as `init_method` of torch.distributed.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    meeting: str = "env://"

    def device(self, device: str) -> str:
        """The torch device of this process: where only its kind was said, one a process."""
        return f"cuda:{self.local_rank}" if device == "cuda" else device

    @property
    def threads(self) -> int:
        """This process's part of the machine's cores."""
        return max(1, (os.cpu_count() or 1) // self.local_size)


def place_from_environment() -> Place | None:
    """The place that a launcher such as `torchrun` has given this process; None without one.

    Raises:
        RankError: the variables are no numbers.
    """
    if not all(name in os.environ for name in VARIABLES):
        return None
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        local_rank = int(os.environ.get("LOCAL_RANK", rank))
        local_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    except ValueError:
        raise RankError("RANK, WORLD_SIZE and their like must be numbers", 2) from None
    return Place(rank, size, local_rank, local_size) if size > 1 else None


class ProcessGroup:
    """Ranks that exchange what they find through torch.distributed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.rank, self.size = place.rank, place.size

    def together(self, work: Callable[[], T]) -> list[T]:
        """Does work on every rank; what came of it on each.

        Raises:
            RankError: another rank failed or was lost.
        """
        made: Any = None
        failed: Exception | None = None
        try:
            made = work()
        except Exception as error:
            # The others wait: whatever it is, they must hear of it.
            failed = error
        problem = None if failed is None else _describe(self.rank, failed)
        found = self._exchange((made, problem))
        if failed is not None:
            raise failed
        for _, problem in found:
            if problem is not None:
                raise RankError(*problem)
        return [made for made, _ in found]

    def first_on_a_machine(self, work: Callable[[], object]) -> None:
        """Does work on the first rank of each machine before the others go on.

        Raises:
            RankError: another rank failed or was lost.
        """
        self.together(lambda: work() if self.place.local_rank == 0 else None)

    def _exchange(self, own: object) -> list[Any]:
        import torch.distributed as dist

        found: list[Any] = [None] * self.size
        try:
            dist.all_gather_object(found, own)
        except RuntimeError as error:
            raise RankError(_lost(error)) from None
        return found


@contextmanager
def joined(place: Place) -> Iterator[ProcessGroup]:
    """The group of a process; left at the end, if all went well.

    Raises:
        RankError: the others are not there.
    """
    import torch.distributed as dist

    try:
        dist.init_process_group(
            "gloo", init_method=place.meeting, rank=place.rank, world_size=place.size, timeout=WAIT
        )
    except (RuntimeError, ValueError) as error:
        raise RankError(_lost(error)) from None
    yield ProcessGroup(place)
    # Behind an error, some of the others may never come to this point.
    dist.destroy_process_group()


def _lost(error: Exception) -> str:
    return f"the connection to the other ranks is lost: {str(error).splitlines()[0]}"


def _describe(rank: int, error: Exception) -> tuple[str, int]:
    """Message and exit status for the ranks that the error did not happen on."""
    text, status = message_and_status(error) or (f"{type(error).__name__}: {error}", 1)
    return f"rank {rank}: {text.removeprefix('error: ')}", status
