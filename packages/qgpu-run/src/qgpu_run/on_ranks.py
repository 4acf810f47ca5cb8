"""A launch request on several ranks, each with an engine of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from qgpu_isa.machine_config import MachineConfig

from qgpu_run.engines.engine import Engine
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.open_engine import EngineChoice
from qgpu_run.outcome import Outcome
from qgpu_run.process_group import Place, ProcessGroup, joined
from qgpu_run.progress import Progress
from qgpu_run.run_request import run_request


@dataclass(frozen=True)
class LaunchOnRanks:
    """A launch as each rank runs it; can be sent to other processes.

    Attributes:
        request: `LaunchRequest.for_others`.
        choice: of the engine; its device may be a kind, of which each process takes its own.
        options: of `run_request`.
    """

    request: LaunchRequest
    choice: EngineChoice
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, group: ProcessGroup) -> Outcome:
        """Runs the launch; the same outcome on every rank, but for times.

        Raises:
            QgpuError: as `run_request` does, or the engine cannot be opened.
            RankError: another rank failed or was lost.
        """
        progress = Progress(shown=group.rank == 0)
        engine = open_on_ranks(self.choice, self.request.launch.config, group, progress)
        outcome = run_request(
            self.request, engine, **self.options, on_token=progress.wrote, ranks=group
        )
        progress.done()
        return outcome


def open_on_ranks(
    choice: EngineChoice, config: MachineConfig, group: ProcessGroup, progress: Progress
) -> Engine:
    """This rank's engine; on each machine the checkpoint is built and read through once.

    Raises:
        RequestError, ModelError: as `EngineChoice.open`.
        RankError: another rank failed or was lost.
    """
    place = group.place
    own = replace(choice, device=place.device(choice.device), threads=place.threads)
    group.first_on_a_machine(lambda: own.prepare(config))
    opened: list[Engine] = []
    group.together(lambda: opened.append(own.open(config, progress, quiet=group.rank > 0)))
    return opened[0]


def launch_as_rank(
    place: Place,
    make_request: Callable[[], LaunchRequest],
    choice: EngineChoice,
    options: Mapping[str, Any],
) -> tuple[LaunchRequest, Outcome]:
    """Takes part in a launch, as one of the processes that a launcher has started.

    Args:
        make_request: called on rank 0, whose request all ranks run.

    Returns:
        the request, which knows `baseline_tokens` on rank 0, and what came of it.

    Raises:
        QgpuError, QgpuPtxError: as `make_request` and `LaunchOnRanks`.
    """
    made: list[LaunchRequest] = []

    def make() -> LaunchRequest | None:
        if place.rank > 0:
            return None
        made.append(make_request())
        return made[0].for_others()

    with joined(place) as group:
        shared = group.together(make)[0]
        assert shared is not None
        outcome = LaunchOnRanks(shared, choice, options)(group)
    return (made or [shared])[0], outcome
