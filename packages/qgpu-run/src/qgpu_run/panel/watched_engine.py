"""An engine that tells a feed what goes through it."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu_isa.machine_config import MachineConfig

from qgpu_run.engines.engine import Engine, Prediction
from qgpu_run.panel.events import PanelFeed
from qgpu_run.panel.machine_view import MachineView


class WatchedEngine:
    """Any engine, run as it would be; what is told is what was fed, chosen and read.

    Behind each block that stores, the memory is read from the engine's state, so what the panel
    shows is what the model holds.
    """

    def __init__(self, engine: Engine, feed: PanelFeed) -> None:
        self._engine = engine
        self._feed = feed
        self._view = MachineView(engine.config)
        self._chosen: int | None = None

    @property
    def name(self) -> str:
        """The engine's."""
        return self._engine.name

    @property
    def config(self) -> MachineConfig:
        """The engine's."""
        return self._engine.config

    def reset(self) -> None:
        """Forgets everything."""
        self._engine.reset()
        self._chosen = None
        self._view.reset()
        self._feed.reset()

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """Feeds tokens: the one that was chosen last, and what the host writes."""
        view, feed = self._view, self._feed
        own = list(tokens)
        if own and own[0] == self._chosen:
            own.pop(0)
        if own:
            for token in own:
                view.take_setup(token)
            feed.setup(own)
        feed.wait()
        prediction = self._engine.feed(tokens)
        if view.stores_unread:
            self._read()
        self._chosen = prediction.token
        view.take(prediction.token)
        feed.token(prediction.token, prediction.margin)
        return prediction

    def _read(self) -> None:
        """Tells what the state's memory holds that it did not hold when it was last read."""
        found = self._engine.read_memory()
        known = self._view.memory
        self._view.stores_unread = 0
        if found != known:
            words = {a: w for a, (w, old) in enumerate(zip(found, known, strict=True)) if w != old}
            self._view.take_memory(words)
            self._feed.memory(words)

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """Not watched: teacher forcing chooses nothing."""
        return self._engine.score(tokens, first)

    def read_memory(self) -> list[int]:
        """The words of memory."""
        return self._engine.read_memory()
