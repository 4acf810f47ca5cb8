"""An engine whose memory is read through its tokens alone."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.vocabulary import TokenClass, vocabulary

from qgpu_run.engines.engine import Engine, Prediction
from qgpu_run.errors import RequestError
from qgpu_run.panel.machine_view import MachineView
from qgpu_run.read_back import ReadBack, ReadBackError, decode_read_back, pieces, read_back_program


class ReadBackEngine:
    """Any engine; `read_words` and `read_memory` have it write out the words.

    It reads what goes through it, to know the program and the registers that the state holds. The
    stream goes on behind a read-back.

    Attributes:
        decoded, setup: tokens of read-backs that the engine and the host wrote.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.decoded = self.setup = 0
        self._view = MachineView(engine.config)
        self._chosen: int | None = None

    @property
    def name(self) -> str:
        """The engine's."""
        return self.engine.name

    @property
    def config(self) -> MachineConfig:
        """The engine's."""
        return self.engine.config

    @property
    def rom(self) -> list[list[int]]:
        """[block][part] rows of the program that the state holds."""
        return [list(rows) for rows in self._view.rom]

    def reset(self) -> None:
        """Forgets everything."""
        self.engine.reset()
        self._view.reset()
        self._chosen = None

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """The engine's choice."""
        prediction = self.engine.feed(tokens)
        for token in tokens:
            self._view.take_setup(token)
        self._chosen = prediction.token
        return prediction

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """The engine's choices."""
        predictions = self.engine.score(tokens, first)
        for token in tokens:
            self._view.take_setup(token)
        self._chosen = predictions[-1].token
        return predictions

    def read_memory(self) -> list[int]:
        """The words of memory, each of which the engine writes out."""
        found = self.read_words([range(self.config.memory_words)])
        return [found[address] for address in range(self.config.memory_words)]

    def read_words(self, ranges: Sequence[range]) -> dict[int, int]:
        """The words at addresses, by address.

        Raises:
            ReadBackError: a CTA runs, or what the engine writes does not tell them.
        """
        words: dict[int, int] = {}
        for piece in pieces(self.config, ranges):
            words |= self._read(read_back_program(self.config, piece.start, len(piece)))
        return words

    def _read(self, read_back: ReadBack) -> dict[int, int]:
        vocab = vocabulary(self.config)
        end = vocab.range_of(TokenClass.END).start
        # A launch's last token is chosen, but not read.
        if self._view.cta_runs and self._chosen != end:
            raise RequestError("memory can be read back where no CTA runs")
        setup = [end] if self._view.cta_runs else []
        setup += read_back.setup(self._view)
        self.setup += len(setup)
        token = self.feed(setup).token
        view, tokens = self._view.copy(), [token]
        # No row takes more: a record of a group has ten tokens at most.
        most = read_back.words * 10 + 100
        while token != end and token in range(vocab.size) and len(tokens) < most:
            if token in vocab.range_of(TokenClass.FAULT):
                break
            token = self.feed([token]).token
            tokens.append(token)
        self.decoded += len(tokens)
        if token != end:
            raise ReadBackError(
                f"the model was to write out {read_back.words} words of memory, and did not end"
            )
        return decode_read_back(read_back, view, tokens)
