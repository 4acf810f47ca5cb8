"""What an engine is: something that reads tokens and says which token comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from qgpu_isa.machine_config import MachineConfig


class Prediction(NamedTuple):
    """The greedy choice after a token.

    Attributes:
        token: id in the machine's vocabulary; `-1 - t` if text token t of the model won.
        margin: how far the winner's logit is above the second, in bf16 steps of the winner's.
    """

    token: int
    margin: float


class Engine(Protocol):
    """Executes one launch at a time; tokens are ids of the machine's vocabulary.

    The host calls `reset`, then `feed` with setup records and, one by one, the tokens that the
    engine itself chose. It computes no value and takes no decision.
    """

    @property
    def name(self) -> str:
        """Name, as in `--engine`."""

    @property
    def config(self) -> MachineConfig:
        """The machine."""

    def reset(self) -> None:
        """Forgets everything: the next token is the first."""

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """Reads tokens (at least one) and predicts the next."""

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """Reads all tokens; the predictions after each from index `first` on."""

    def read_memory(self) -> list[int]:
        """The words of memory; a word never written is 0."""


def reads_memory(engine: Engine) -> bool:
    """Whether an engine's memory can be looked at; if not, the words must come as tokens."""
    return not getattr(engine, "tokens_only", False)


@runtime_checkable
class RowScorer(Protocol):
    """An engine that reads several independent streams at once."""

    def score_rows(self, rows: Sequence[Sequence[int]]) -> list[list[Prediction]]:
        """Reads whole streams from nothing; predictions after every token of each."""

    def read_memory(self, row: int = 0) -> list[int]:
        """The words of memory of a stream."""


@runtime_checkable
class RowEngine(Protocol):
    """An engine whose stream can be copied into rows that are then read side by side.

    Between `fork` and `join`, `feed` and `score` may not be called.
    """

    @property
    def name(self) -> str:
        """Name, as in `--engine`."""

    @property
    def config(self) -> MachineConfig:
        """The machine."""

    @property
    def restarts_rows(self) -> bool:
        """Whether a row can begin anew, and be at another position than the others."""

    def reset(self) -> None:
        """Forgets everything, rows too."""

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """Reads tokens (at least one) and predicts the next."""

    def fork(self, rows: int) -> None:
        """Makes rows, each a copy of the stream as it is now; drops earlier rows."""

    def restart(self, row: int) -> None:
        """Makes a row a copy of the stream again; only if `restarts_rows`."""

    def feed_rows(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Prediction]:
        """Reads tokens (at least one each) in the rows named, in ascending order.

        Without `restarts_rows` they are as many in every row, and rows that are not named read END
        instead.
        """

    def read_memory(self, row: int = 0) -> list[int]:
        """The words of memory of a row."""

    def join(self) -> None:
        """Drops the rows; the stream is what it was before `fork`."""
