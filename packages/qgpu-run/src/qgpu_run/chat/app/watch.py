"""What stands around the engine of a chat: a way to end launches, and a panel that looks on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from qgpu_run.chat.app.cancellation import CancellableEngine, Cancellation
from qgpu_run.engines.engine import Engine
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.outcome import Outcome
from qgpu_run.panel.events import LaunchInfo, LaunchStopped, PanelFeed
from qgpu_run.panel.watched_engine import WatchedEngine


@dataclass
class Ending:
    """How a launch ended, if whoever ran it knows more than that it did."""

    outcome: Outcome | None = None


class LaunchWatch:
    """Wraps an engine and tells a feed of its launches.

    Args:
        cancellation: ends launches.
        feed: of the panel; None without one.
    """

    def __init__(self, cancellation: Cancellation, feed: PanelFeed | None) -> None:
        self._cancellation, self._feed = cancellation, feed
        self._engine_name = ""

    def wrap(self, engine: Engine) -> Engine:
        """The engine to run in its place."""
        self._engine_name = engine.name
        wrapped = CancellableEngine(engine, self._cancellation)
        return wrapped if self._feed is None else WatchedEngine(wrapped, self._feed)

    @contextmanager
    def around(self, request: LaunchRequest) -> Iterator[Ending]:
        """The context of a launch."""
        ending = Ending()
        if self._feed is None:
            yield ending
            return
        self._feed.started(LaunchInfo.of(request, self._engine_name))
        try:
            yield ending
        except LaunchStopped:
            self._feed.launch_ended(problem="stopped")
            raise
        except Exception as error:
            self._feed.launch_ended(problem=str(error))
            raise
        self._feed.launch_ended(ending.outcome)
