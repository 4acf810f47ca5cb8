"""Runs a launch in a thread of its own and tells a feed of it."""

from __future__ import annotations

import threading

from qgpu_isa.errors import QgpuError

from qgpu_run.engines.engine import Engine
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.outcome import Outcome
from qgpu_run.panel.events import LaunchInfo, LaunchStopped, PanelFeed
from qgpu_run.panel.watched_engine import WatchedEngine
from qgpu_run.run_request import run_request


class LiveLaunch:
    """A launch that a panel can show.

    Attributes:
        outcome: what it came to, None while it runs or if it was stopped.
        error: what kept it from running.
    """

    def __init__(
        self,
        request: LaunchRequest,
        engine: Engine,
        feed: PanelFeed,
        *,
        check: bool = False,
        max_tokens: int,
    ) -> None:
        self.outcome: Outcome | None = None
        self.error: QgpuError | None = None
        self._request, self._engine, self._feed = request, engine, feed
        self._check, self._max_tokens = check, max_tokens
        # A pass through a large model cannot be interrupted: quitting does not wait for it.
        self._thread = threading.Thread(target=self.run, name="launch", daemon=True)

    def start(self) -> None:
        """Runs it in its thread."""
        self._thread.start()

    def join(self, seconds: float | None = None) -> None:
        """Waits for its end."""
        self._thread.join(seconds)

    def run(self) -> None:
        """Runs it in this thread."""
        feed, request = self._feed, self._request
        feed.started(LaunchInfo.of(request, self._engine.name))
        try:
            self.outcome = run_request(
                request,
                WatchedEngine(self._engine, feed),
                check=self._check,
                max_tokens=self._max_tokens,
            )
        except LaunchStopped:
            feed.launch_ended(problem="stopped")
        except QgpuError as error:
            self.error = error
            feed.launch_ended(problem=str(error))
        except BaseException as error:
            feed.launch_ended(problem=f"{type(error).__name__}: {error}")
            raise
        else:
            feed.launch_ended(self.outcome)
