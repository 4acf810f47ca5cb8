"""The thread that runs the model: one job after the other, whatever becomes of each."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from qgpu_isa.errors import QgpuError, os_error_text
from qgpu_ptx.diagnostics import QgpuPtxError

from qgpu_run.chat.app.events import ChatEvent, Note

Job = Callable[[], None]


def describe_error(error: Exception) -> str:
    """What went wrong, for people: one line where the error has no better text."""
    if isinstance(error, QgpuPtxError):
        return error.render()
    if isinstance(error, QgpuError):
        return str(error).strip()
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        return os_error_text(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def run_job(job: Job, tell: Callable[[ChatEvent], None]) -> None:
    """Runs a job; an error is told as a note."""
    try:
        job()
    except Exception as error:
        tell(Note(describe_error(error), bad=True))


class Worker:
    """Runs jobs in a thread that ends with the program.

    Args:
        tell: gets the errors of jobs.
    """

    def __init__(self, tell: Callable[[ChatEvent], None]) -> None:
        self._tell = tell
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._unfinished = 0
        self._lock = threading.Lock()
        # A pass through a large model cannot be interrupted: the end does not wait for it.
        self._thread = threading.Thread(target=self._run, name="chat", daemon=True)

    @property
    def busy(self) -> bool:
        """Whether there is a job that is not finished."""
        return self._unfinished > 0

    def start(self) -> None:
        """Begins with the jobs."""
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Has a job run behind those before it."""
        with self._lock:
            self._unfinished += 1
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            run_job(self._jobs.get(), self._tell)
            with self._lock:
                self._unfinished -= 1
