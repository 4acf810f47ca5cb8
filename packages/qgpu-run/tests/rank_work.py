"""What test_ranks has other processes do: they import it by its name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qgpu_run.check_rows import run_request_rows
from qgpu_run.engines.engine import RowEngine
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.errors import ModelError
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.on_ranks import open_on_ranks
from qgpu_run.open_engine import EngineChoice
from qgpu_run.outcome import Outcome
from qgpu_run.process_group import ProcessGroup
from qgpu_run.progress import Progress
from qgpu_run.run_request import run_request
from qgpu_run.run_rows import RowsResult


class Rows:
    """Runs a launch on a model; the result with every token and changed word."""

    def __init__(self, request: LaunchRequest, model: Path, rows: int) -> None:
        self._request, self._model, self._rows = request, model, rows

    def __call__(self, group: ProcessGroup) -> RowsResult:
        config = self._request.launch.config
        choice = EngineChoice("sparse", model=self._model)
        engine = open_on_ranks(choice, config, group, Progress(shown=False))
        assert isinstance(engine, RowEngine)
        return run_request_rows(self._request, engine, self._rows, ranks=group)


class Launches:
    """Runs launches one after the other on the interpreter."""

    def __init__(self, launches: Sequence[tuple[LaunchRequest, Mapping[str, Any]]]) -> None:
        self._launches = launches

    def __call__(self, group: ProcessGroup) -> list[Outcome]:
        return [
            run_request(request, InterpreterEngine(request.launch.config), **options, ranks=group)
            for request, options in self._launches
        ]


def die_on_rank_1(group: ProcessGroup) -> None:
    """Rank 1 is killed while rank 0 computes, and does not look."""
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)


def die_while_rank_0_waits(group: ProcessGroup) -> None:
    """Rank 1 is killed while rank 0 waits for what it finds."""
    if group.rank == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    group.together(lambda: None)


def no_model_on_rank_1(group: ProcessGroup) -> None:
    """Rank 1 finds that its checkpoint is damaged."""

    def load() -> None:
        if group.rank == 1:
            raise ModelError("it is damaged")

    group.together(load)


def broken_on_rank_1(group: ProcessGroup) -> None:
    """Rank 1 fails as no code should."""
    if group.rank == 1:
        raise ZeroDivisionError("broken")
    time.sleep(600)
