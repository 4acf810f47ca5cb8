"""What happens to a launch, as events that one thread tells and another shows.

A program that runs launches calls the methods of a `PanelFeed` from whatever thread the engine is
in; a panel takes the events out of it. The feed also holds the engine back while the panel is
paused, if it may.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.program import ProgramImage
from qgpu_isa.vocabulary import TokenClass, vocabulary

from qgpu_run.launch_request import LaunchRequest, OutputArray
from qgpu_run.outcome import Outcome

MOST_WAITING = 1_000
"""Events that may wait to be shown before the engine waits for them."""

FREE = 1 << 62
"""A limit that is none."""


class LaunchStopped(Exception):
    """The panel was closed while the launch ran."""


@dataclass(frozen=True)
class LaunchInfo:
    """What is known of a launch before its first token.

    Attributes:
        config: the machine.
        image: the program; only its name and its blocks' sources are used.
        threads, ctas: of the launch.
        kernel, engine: names.
        arrays: the launch's arrays, to name memory by.
    """

    config: MachineConfig
    image: ProgramImage
    threads: int
    ctas: int
    kernel: str = ""
    engine: str = ""
    arrays: tuple[OutputArray, ...] = ()

    @classmethod
    def of(cls, request: LaunchRequest, engine: str) -> LaunchInfo:
        """Of a request that an engine is about to run."""
        launch = request.launch
        return cls(
            launch.config, launch.image, launch.threads, launch.ctas,
            request.kernel, engine, request.arrays,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Started:
    """A launch begins."""

    info: LaunchInfo


@dataclass(frozen=True, slots=True)
class Reset:
    """The engine's state is empty."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The host wrote tokens."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The model chose a token, `seconds` after the launch began."""

    token: int
    margin: float
    seconds: float


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """Words that were read from the recurrent state and are other than before."""

    words: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Ended:
    """The launch has ended: its outcome as `Outcome.to_dict` has it, or why there is none."""

    outcome: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


Event = Started | Reset | Setup | Decoded | MemoryRead | Ended


class PanelFeed:
    """Takes events from the engine's thread; see `WatchedEngine` for what calls it.

    Args:
        holds: whether `token` may wait while the panel is paused or runs at a chosen speed. If
            not, only what is shown waits.
    """

    def __init__(self, *, holds: bool = True) -> None:
        self.holds = holds
        self._events: deque[Event] = deque()
        self._gate = threading.Condition()
        self._limit = FREE
        self._to_block = False
        self._unseen_starts = 0
        self._decoded = 0
        self._closed = False
        self._started = 0.0
        self._held = 0.0
        self._exec = range(0)

    # The engine's thread calls these.

    def launch_started(
        self,
        config: MachineConfig,
        image: ProgramImage,
        launch: Launch,
        *,
        kernel: str = "",
        engine: str = "",
        arrays: Sequence[OutputArray] = (),
    ) -> None:
        """A launch begins."""
        self.started(
            LaunchInfo(
                config,
                image,
                launch.threads,
                launch.ctas,
                kernel or image.name,
                engine,
                tuple(arrays),
            )
        )

    def started(self, info: LaunchInfo) -> None:
        """A launch begins."""
        with self._gate:
            self._decoded = 0
            # How far the launch before might go says nothing of this one.
            if self._limit != FREE or self._to_block:
                self._limit, self._to_block = 0, False
            self._unseen_starts += 1
            self._started, self._held = time.monotonic(), 0.0
            self._exec = vocabulary(info.config).range_of(TokenClass.EXEC)
            self._events.append(Started(info))

    def reset(self) -> None:
        """The engine's state is empty."""
        self._events.append(Reset())

    def setup(self, tokens: Sequence[int]) -> None:
        """The host wrote tokens."""
        self._events.append(Setup(tuple(tokens)))

    def token(self, token: int, margin: float) -> None:
        """The model chose a token."""
        self._decoded += 1
        now = time.monotonic() - self._started - self._held
        self._events.append(Decoded(token, margin, now))
        if token in self._exec and self._to_block:
            with self._gate:
                if self._to_block:
                    self._to_block, self._limit = False, self._decoded

    def memory(self, words: Mapping[int, int]) -> None:
        """Words read from the recurrent state are other than before."""
        self._events.append(MemoryRead(words))

    def launch_ended(self, outcome: Outcome | None = None, problem: str = "") -> None:
        """The launch has ended."""
        self._events.append(Ended({} if outcome is None else outcome.to_dict(), problem))

    def wait(self) -> None:
        """Waits until the model may choose the next token.

        Raises:
            LaunchStopped: the panel has been closed.
        """
        if self._closed:
            raise LaunchStopped
        if not self._must_wait():
            return
        before = time.monotonic()
        with self._gate:
            while not self._closed and self._must_wait():
                self._gate.wait(0.5)
        self._held += time.monotonic() - before
        if self._closed:
            raise LaunchStopped

    def _must_wait(self) -> bool:
        return self.holds and (self._decoded >= self._limit or len(self._events) > MOST_WAITING)

    # The panel's thread calls these.

    def take(self, most: int) -> list[Event]:
        """Events that nobody has taken yet, the oldest first."""
        taken = []
        for _ in range(min(most, len(self._events))):
            taken.append(self._events.popleft())
        if taken:
            with self._gate:
                self._unseen_starts -= sum(isinstance(event, Started) for event in taken)
                self._gate.notify_all()
        return taken

    def allow(self, tokens: int = FREE, *, to_block: bool = False) -> None:
        """Lets the model choose tokens until there are as many, or up to the next EXEC.

        Says nothing while a launch has begun that has not been taken: it is meant for another one.
        """
        with self._gate:
            if self._unseen_starts:
                return
            self._limit, self._to_block = (FREE if to_block else tokens), to_block
            self._gate.notify_all()

    def close(self) -> None:
        """Ends the launch at its next token."""
        with self._gate:
            self._closed = True
            self._gate.notify_all()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed
