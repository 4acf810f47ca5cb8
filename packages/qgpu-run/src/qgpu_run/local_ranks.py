"""Ranks as processes of this machine, started for one piece of work and ended with it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from qgpu_isa.termination import clean_termination

from qgpu_run.command_errors import message_and_status
from qgpu_run.errors import RankError
from qgpu_run.load_model import let_threads_sleep
from qgpu_run.process_group import Place, ProcessGroup, joined

T = TypeVar("T")

GRACE_SECONDS = 1.0
"""What ranks have to end by themselves when one has failed, and again before they are killed."""


def run_in_processes(work: Callable[[ProcessGroup], T], count: int) -> T:
    """Does work on as many new processes, which are gone when this returns or raises.

    Args:
        work: called in each of them; can be pickled, as can what it returns.
        count: at least 2.

    Returns:
        what it returned on rank 0.

    Raises:
        RankError: the work failed, or a process died.
    """
    let_threads_sleep()  # the processes import torch before they get to that
    from torch.multiprocessing.spawn import (
        ProcessExitedException,
        ProcessRaisedException,
        start_processes,
    )

    start: Any = start_processes
    with TemporaryDirectory(prefix="qgpu-ranks-") as folder, clean_termination():
        context: Any = start(
            _run_rank, (count, folder, work), count, join=False, daemon=True, start_method="spawn"
        )
        try:
            while not context.join(grace_period=GRACE_SECONDS):
                pass
        except ProcessExitedException as error:
            how = error.signal_name or f"exit status {error.exit_code}"
            raise RankError(f"rank {error.error_index} died ({how}), the launch is lost") from None
        except ProcessRaisedException as error:
            raise RankError(f"rank {error.error_index} failed: {str(error).strip()}") from None
        finally:
            _end(context.processes)
        result: T = _read_result(Path(folder))
        return result


def _end_with(parent: BaseProcess) -> None:
    """Ends this process when its parent is gone.

    torch has Linux send SIGINT then, which a process started in the background may ignore.
    """
    parent.join()
    os._exit(1)


def _run_rank(rank: int, count: int, folder: str, work: Callable[[ProcessGroup], object]) -> None:
    parent = multiprocessing.parent_process()
    if parent is None or not parent.is_alive():
        return
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    place = Place(rank, count, rank, count, f"file://{folder}/meeting")
    try:
        with joined(place) as group:
            result: tuple[object, tuple[str, int] | None] = (work(group), None)
    except Exception as error:
        problem = message_and_status(error)
        if problem is None:
            raise
        result = (None, (problem[0].removeprefix("error: "), problem[1]))
    if rank == 0:
        _result_file(Path(folder)).write_bytes(pickle.dumps(result))


def _read_result(folder: Path) -> Any:
    try:
        result, problem = pickle.loads(_result_file(folder).read_bytes())
    except FileNotFoundError:
        raise RankError("the ranks were interrupted") from None
    if problem is not None:
        raise RankError(*problem)
    return result


def _result_file(folder: Path) -> Path:
    return folder / "result"


def _end(processes: list[Any]) -> None:
    for process in processes:
        if process.is_alive():
            process.terminate()
    for process in processes:
        process.join(GRACE_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
