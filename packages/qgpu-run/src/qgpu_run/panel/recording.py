"""The history of a launch: every event, and quick ways back to any token."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any

from qgpu_isa.vocabulary import TokenClass, vocabulary

from qgpu_run.panel.events import (
    Decoded,
    Ended,
    Event,
    LaunchInfo,
    MemoryRead,
    Reset,
    Setup,
)
from qgpu_run.panel.machine_view import MachineView, TokenNote

CHECKPOINT_TOKENS = 512
"""Tokens between two copies of the view."""


class Recording:
    """The events of one launch and a view of the machine at a position in them.

    A position is a number of decoded tokens. The view at it has also taken what came between
    that token and the next: memory that was read, the setup of the next CTA.

    Attributes:
        info: the launch.
        view: the machine at `position`.
        notes: what each token that was ever shown belongs to.
        outcome, problem: how the launch ended.
        ended: whether it has.
    """

    def __init__(self, info: LaunchInfo, base: MachineView | None = None) -> None:
        self.info = info
        self.events: list[Event] = []
        self.tokens: list[Decoded] = []
        self.notes: list[TokenNote] = []
        self.outcome: Mapping[str, Any] = {}
        self.problem = ""
        self.ended = False
        self._token_at: list[int] = []
        self._execs: list[int] = []
        self._exec_ids = vocabulary(info.config).range_of(TokenClass.EXEC)
        self.view = MachineView(info.config) if base is None else base.copy()
        self.view.begin_launch()
        self._next = 0
        self._checkpoints: dict[int, tuple[int, MachineView]] = {0: (0, self.view.copy())}

    @property
    def head(self) -> int:
        """Tokens that the model has written so far."""
        return len(self.tokens)

    @property
    def position(self) -> int:
        """Tokens that the view has read."""
        return self.view.decoded

    @property
    def at_head(self) -> bool:
        """Whether the view has read all there is."""
        return self._next == len(self.events)

    def append(self, event: Event) -> None:
        """Takes the next event of the launch."""
        if isinstance(event, Decoded):
            self._token_at.append(len(self.events))
            self.tokens.append(event)
            if event.token in self._exec_ids:
                self._execs.append(len(self.tokens))
        elif isinstance(event, Ended):
            self.ended, self.outcome, self.problem = True, event.outcome, event.problem
        self.events.append(event)

    def seek(self, position: int) -> None:
        """Moves the view."""
        position = max(0, min(position, self.head))
        if position < self.position:
            mark = position // CHECKPOINT_TOKENS
            while mark not in self._checkpoints:
                mark -= 1
            self._next, view = self._checkpoints[mark]
            self.view = view.copy()
        end = self._token_at[position] if position < self.head else len(self.events)
        while self._next < end:
            self._play(self.events[self._next])
            self._next += 1

    def _play(self, event: Event) -> None:
        view = self.view
        match event:
            case Decoded(token, margin):
                if view.decoded % CHECKPOINT_TOKENS == 0:
                    mark = view.decoded // CHECKPOINT_TOKENS
                    # Behind the setup, which so is not read again.
                    if mark not in self._checkpoints or view.decoded == 0:
                        self._checkpoints[mark] = (self._next, view.copy())
                note = view.take(token, margin)
                if view.decoded > len(self.notes):
                    self.notes.append(note)
            case Setup(tokens):
                for token in tokens:
                    view.take_setup(token)
            case MemoryRead(words):
                view.take_memory(words)
            case Reset():
                counts = view.decoded, view.setup
                view.reset()
                view.decoded, view.setup = counts
            case _:
                pass

    def block_after(self, position: int) -> int | None:
        """The position behind the next EXEC, None if there is none yet."""
        index = bisect_right(self._execs, position)
        return self._execs[index] if index < len(self._execs) else None

    def block_before(self, position: int) -> int:
        """The position behind the EXEC before, 0 if there is none."""
        index = bisect_left(self._execs, position)
        return self._execs[index - 1] if index else 0

    def seconds_at(self, position: int) -> float:
        """When the token before a position was written, in seconds since the launch began."""
        return self.tokens[position - 1].seconds if 0 < position <= self.head else 0.0

    def rate_at(self, position: int, window: float = 1.0) -> float:
        """Tokens a second that were written over the last second before a position."""
        if position < 2:
            return 0.0
        now = self.seconds_at(position)
        low = bisect_left(self.tokens, now - window, 0, position, key=lambda event: event.seconds)
        low = min(low, position - 2)
        passed = now - self.tokens[low].seconds
        return (position - 1 - low) / passed if passed > 0 else 0.0
