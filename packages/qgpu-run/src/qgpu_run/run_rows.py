"""CTAs of a launch side by side: each in a row of its own, as on a streaming multiprocessor (SM).

All rows start from a copy of the state behind what they share (program, memory, INIT records), and
every one decodes a CTA to its end; a CTA that waits takes over the row of one that has ended. Then
the host puts together the words that the CTAs changed. It computes none of them, and refuses where
two CTAs changed the same one; that no CTA read what another wrote is for `guard_rows` to see.

The CTAs of a launch may be run in shares, by several processes (`ranks`): `run_share` runs some of
them, and `join_shares` makes one launch of all shares.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from qgpu_isa.errors import ExecutionError
from qgpu_isa.interpreter import Dependence, Launch
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary

from qgpu_run.check import Mismatch
from qgpu_run.engines.engine import Prediction, RowEngine
from qgpu_run.errors import ForeignTokenError, KernelFaultError, RequestError, TokenLimitError
from qgpu_run.launch import (
    MAX_TOKENS,
    LaunchTrace,
    OnToken,
    check_machine,
    describe_fault,
    init_setup,
    limit_text,
    row_setup,
    shared_setup,
)


@dataclass(frozen=True)
class Failure:
    """What ended a share before its time: the CTA (of several, the smallest), and the error."""

    cta: int
    error: ExecutionError | Mismatch


@dataclass(frozen=True)
class Share:
    """Some CTAs of a launch, run by one process.

    Attributes:
        setup_tokens: how many tokens the host wrote.
        tokens: of each CTA that began, the decoded tokens.
        changes: of each CTA that ended well, the global words that it changed, word address ->
            word.
        min_margin: smallest distance of a chosen token's logit from the second, in bf16 steps.
        seconds: what the share took.
        failure: what else than END and FAULT ended it.
    """

    setup_tokens: int = 0
    tokens: dict[int, tuple[int, ...]] = field(default_factory=dict)
    changes: dict[int, dict[int, int]] = field(default_factory=dict)
    min_margin: float = float("inf")
    seconds: float = 0.0
    failure: Failure | None = None

    @property
    def decoded_tokens(self) -> int:
        """How many tokens the engine wrote."""
        return sum(map(len, self.tokens.values()))


@dataclass(frozen=True)
class RowsResult:
    """A launch whose CTAs have run side by side.

    Attributes:
        trace: the tokens.
        changes: for each CTA the global words that it changed, word address -> word.
        shares: what each process did.
    """

    trace: LaunchTrace
    changes: tuple[dict[int, int], ...]
    shares: tuple[Share, ...]

    def conflicts(self) -> list[Dependence]:
        """The words that more than one CTA changed."""
        found: dict[int, Dependence] = {}
        changed: dict[int, int] = {}
        for cta, words in enumerate(self.changes):
            for address in words:
                if changed.setdefault(address, cta) != cta:
                    found.setdefault(address, Dependence(address, changed[address], cta, False))
        return [found[address] for address in sorted(found)]

    def memory(self, initial: Sequence[int]) -> list[int]:
        """The words of memory after the launch; shared memory stays what it was."""
        words = list(initial)
        for changes in self.changes:
            for address, word in changes.items():
                words[address] = word
        return words


def run_share(
    launch: Launch,
    engine: RowEngine,
    rows: int,
    ctas: Sequence[int],
    *,
    private: Collection[int] = (),
    max_tokens: int = MAX_TOKENS,
    on_token: OnToken | None = None,
    setup: Sequence[int] | None = None,
) -> Share:
    """Runs some CTAs of a launch, at most `rows` at a time; none costs nothing.

    What goes wrong in a CTA is in the share: whether it counts, a CTA of another one may decide.

    Args:
        ctas: their numbers, ascending.

    Raises:
        RequestError: the engine is another machine than the launch's, or has no rows.
    """
    if not isinstance(engine, RowEngine):
        raise RequestError(f"engine {engine.name} runs CTAs one after the other")
    check_machine(launch, engine)
    if not ctas:
        return Share()
    started = time.monotonic()
    if setup is None:
        engine.reset()
        setup = shared_setup(launch)
    setup = [*setup, *init_setup(launch)]
    engine.feed(setup)
    run = _Run(launch, engine, rows, ctas, private, max_tokens, on_token)
    failure = None
    try:
        while run.step():
            pass
    except (ExecutionError, Mismatch) as error:
        failure = Failure(run.at, error)
    finally:
        engine.join()
    return Share(
        len(setup) + run.written,
        {cta: tuple(tokens) for cta, tokens in run.tokens.items()},
        run.changes,
        run.margin,
        time.monotonic() - started,
        failure,
    )


def join_shares(launch: Launch, shares: Sequence[Share], max_tokens: int) -> RowsResult:
    """The launch whose CTAs ran in shares, with the outcome of one after the other.

    Raises:
        TokenLimitError, KernelFaultError, ForeignTokenError, Mismatch: what happened in the CTA
            with the smallest number; those behind it would not have run.
    """
    faults = vocabulary(launch.config).range_of(TokenClass.FAULT)
    tokens = {cta: own for share in shares for cta, own in share.tokens.items()}
    last = min((c for c, own in tokens.items() if own and own[-1] in faults), default=launch.ctas)
    failures = [f for f in (share.failure for share in shares) if f is not None and f.cta <= last]
    if failures:
        raise min(failures, key=lambda failure: failure.cta).error
    if sum(len(own) for cta, own in tokens.items() if cta <= last) > max_tokens:
        raise TokenLimitError(limit_text(max_tokens))
    if last < launch.ctas:
        raise KernelFaultError(describe_fault(launch, last, list(tokens[last])))
    order = range(launch.ctas)
    trace = LaunchTrace(
        sum(share.setup_tokens for share in shares),
        tuple(tokens[cta] for cta in order),
        min(share.min_margin for share in shares),
    )
    changes = {cta: words for share in shares for cta, words in share.changes.items()}
    return RowsResult(trace, tuple(changes[cta] for cta in order), tuple(shares))


class _Run:
    """The rows in progress."""

    def __init__(
        self,
        launch: Launch,
        engine: RowEngine,
        rows: int,
        ctas: Sequence[int],
        private: Collection[int],
        max_tokens: int,
        on_token: OnToken | None,
    ) -> None:
        self._launch, self._engine, self._rows = launch, engine, rows
        self._max_tokens, self._on_token = max_tokens, on_token
        vocab = vocabulary(launch.config)
        self._end = vocab.encode(Token(TokenClass.END))
        self._faulted = vocab.range_of(TokenClass.FAULT)
        self._counted = np.ones(launch.config.global_words, dtype=bool)
        self._counted[list(private)] = False
        self._initial = self._global_words(0)
        self._waiting: Iterator[int] = iter(ctas)
        self._ctas: dict[int, int] = {}
        self._feeds: dict[int, list[int]] = {}
        self.tokens: dict[int, list[int]] = {}
        self.changes: dict[int, dict[int, int]] = {}
        self.faults: dict[int, list[int]] = {}
        self.at = 0
        """The CTA that an error is about."""
        self.written = self._decoded = 0
        self.margin = float("inf")

    def step(self) -> bool:
        """Decodes one token in every row; False when nothing is left to do."""
        if not self._feeds and not self._begin():
            return False
        rows = sorted(self._feeds)
        predictions = self._engine.feed_rows(rows, [self._feeds[row] for row in rows])
        for row, prediction in zip(rows, predictions, strict=True):
            self._take(row, prediction)
        if self._decoded >= self._max_tokens and self._feeds:
            self.at = min(self._ctas[row] for row in self._feeds)
            raise TokenLimitError(limit_text(self._decoded))
        return True

    def _begin(self) -> bool:
        """Starts as many CTAs as there are rows."""
        ctas = list(islice(self._waiting, self._rows))
        if not ctas or self.faults:
            return False
        self._engine.fork(len(ctas))
        for row, cta in enumerate(ctas):
            self._start(row, cta)
        return True

    def _start(self, row: int, cta: int) -> None:
        self._ctas[row], self.tokens[cta] = cta, []
        self._feeds[row] = row_setup(self._launch, cta)
        self.written += len(self._feeds[row])

    def _take(self, row: int, prediction: Prediction) -> None:
        token, margin = prediction
        cta = self.at = self._ctas[row]
        if self.faults and cta > min(self.faults):
            # One after the other, this CTA would not have run.
            del self._feeds[row]
            return
        tokens = self.tokens[cta]
        tokens.append(token)
        self._decoded += 1
        self.margin = min(self.margin, margin)
        if self._on_token is not None:
            self._on_token(cta, token)
        if token < 0:
            raise ForeignTokenError(
                f"after {len(tokens) - 1} tokens of CTA {cta} the model wrote text token "
                f"{-1 - token}"
            )
        if token == self._end:
            self._finish(row, cta)
        elif token in self._faulted:
            self.faults[cta] = tokens
            del self._feeds[row]
        else:
            self._feeds[row] = [token]

    def _finish(self, row: int, cta: int) -> None:
        words = self._global_words(row)
        changed = np.flatnonzero((words != self._initial) & self._counted)
        self.changes[cta] = dict(zip(changed.tolist(), words[changed].tolist(), strict=True))
        del self._feeds[row]
        if self._engine.restarts_rows and not self.faults:
            following = next(self._waiting, None)
            if following is not None:
                self._engine.restart(row)
                self._start(row, following)

    def _global_words(self, row: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(self._engine.read_memory(row)[: len(self._counted)], dtype=np.int64)
