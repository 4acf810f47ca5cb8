"""An engine beside the reference interpreter: both read the same tokens and are compared.

Launches may follow each other in one state: the interpreter's registers and memory go on like the
engine's.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgpu_run.engines.engine import Engine, Prediction, reads_memory
from qgpu_run.engines.interpreter_engine import InterpreterEngine


class CheckedEngine:
    """Passes an engine's choices on and notes whether the interpreter made the same.

    After a difference the interpreter cannot follow any more: `compare` then says False until both
    begin anew with `reset`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name, self.config = engine.name, engine.config
        self.tokens_only = not reads_memory(engine)
        self._interpreter = InterpreterEngine(engine.config)
        self._same = True

    def reset(self) -> None:
        """Forgets everything."""
        self._engine.reset()
        self._interpreter.reset()
        self._same = True

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """The engine's choice."""
        prediction = self._engine.feed(tokens)
        if self._same:
            self._same = self._interpreter.feed(tokens).token == prediction.token
        return prediction

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """The engine's choices."""
        return [self.feed([token]) for token in tokens][first:]

    def read_memory(self) -> list[int]:
        """The engine's memory."""
        return self._engine.read_memory()

    def compare(self) -> bool:
        """Whether all choices since `reset` were the same, and all words of memory are now.

        Of an engine whose memory is read back as tokens, these are choices like all others.
        """
        if self._same and not self.tokens_only:
            self._same = self._interpreter.read_memory() == self.read_memory()
        return self._same
