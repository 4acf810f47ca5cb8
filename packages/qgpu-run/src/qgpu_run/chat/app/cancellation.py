"""Ending a reply or a launch from another thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from qgpu_isa.errors import QgpuError
from qgpu_isa.machine_config import MachineConfig

from qgpu_run.engines.engine import Engine, Prediction


class Cancelled(QgpuError):
    """The user ended it."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("cancelled")


class Cancellation:
    """Whether what runs now is to end, and how far it is.

    Attributes:
        gpu_tokens: tokens that the GPU has written for it.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self.gpu_tokens = 0

    def begin(self) -> None:
        """Something new runs."""
        self._event.clear()
        self.gpu_tokens = 0

    def ask(self) -> None:
        """Ends what runs, at its next token."""
        self._event.set()

    def asked(self) -> bool:
        """Whether it is to end."""
        return self._event.is_set()


class CancellableEngine:
    """Any engine; between two tokens it raises `Cancelled` when asked to."""

    def __init__(self, engine: Engine, cancellation: Cancellation) -> None:
        self._engine, self._cancellation = engine, cancellation
        self.name, self.config = engine.name, engine.config

    name: str
    config: MachineConfig

    def reset(self) -> None:
        """Forgets everything."""
        self._engine.reset()

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """The engine's choice.

        Raises:
            Cancelled: the launch is to end.
        """
        if self._cancellation.asked():
            raise Cancelled
        prediction = self._engine.feed(tokens)
        self._cancellation.gpu_tokens += 1
        return prediction

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """The engine's choices."""
        return self._engine.score(tokens, first)

    def read_memory(self) -> list[int]:
        """The engine's memory."""
        return self._engine.read_memory()
