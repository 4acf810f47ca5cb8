"""CTAs side by side: whether they may be, and every token against the reference interpreter.

The reference interpreter runs each CTA from the memory that the host wrote, and notes which words
it reads and writes. That is a guard: it decides whether the launch runs at all, never a value.

Where several processes run a launch, each does this for its own CTAs, and all for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu_isa.interpreter import (
    CtaEffects,
    CtaRun,
    Dependence,
    dependences,
    run_some_apart,
    up_to_fault,
)
from qgpu_isa.vocabulary import vocabulary

from qgpu_run.check import (
    CONTEXT_TOKENS,
    CheckReport,
    Difference,
    Mismatch,
    memory_differences,
    token_text,
)
from qgpu_run.engines.engine import RowEngine
from qgpu_run.errors import CtaDependenceError, KernelFaultError, SharedWord
from qgpu_run.launch import MAX_TOKENS, OnToken
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.ranks import ALONE, Ranks, own_ctas
from qgpu_run.run_rows import RowsResult, Share, join_shares, run_share


@dataclass(frozen=True)
class RunsApart:
    """What every CTA does on its own.

    Attributes:
        own: the CTAs of this process, with their tokens.
        effects: all CTAs in the order of the launch, up to the first that faults.
    """

    own: dict[int, CtaRun]
    effects: list[CtaEffects]


def run_rows_apart(
    request: LaunchRequest, max_tokens: int = MAX_TOKENS, ranks: Ranks = ALONE
) -> RunsApart:
    """Has the reference interpreter run every CTA on its own.

    Raises:
        ExecutionError: they decode more than `max_tokens` tokens.
    """
    launch = request.launch
    own: dict[int, CtaRun] = {}

    def run() -> dict[int, CtaEffects]:
        own.update(run_some_apart(launch, own_ctas(ranks, launch.ctas), max_tokens))
        return {cta: run.effects for cta, run in own.items()}

    found: dict[int, CtaEffects] = {}
    for part in ranks.together(run):
        found |= part
    effects = up_to_fault(found, max_tokens)
    return RunsApart({cta: run for cta, run in own.items() if cta < len(effects)}, effects)


def guard_rows(
    request: LaunchRequest, max_tokens: int = MAX_TOKENS, ranks: Ranks = ALONE
) -> RunsApart:
    """What every CTA does on its own.

    Raises:
        CtaDependenceError: a CTA reads or writes a word that an earlier one writes.
        ExecutionError: they decode more than `max_tokens` tokens.
    """
    runs = run_rows_apart(request, max_tokens, ranks)
    refuse(request, dependences(runs.effects, request.private))
    return runs


def refuse(request: LaunchRequest, found: Sequence[Dependence]) -> None:
    """Raises CtaDependenceError if there is a dependence."""
    if found:
        words = [
            SharedWord(d.address, request.place_of(d.address), d.first, d.second, d.stale)
            for d in found
        ]
        raise CtaDependenceError(request.kernel, words)


def run_request_rows(
    request: LaunchRequest,
    engine: RowEngine,
    rows: int,
    *,
    max_tokens: int = MAX_TOKENS,
    on_token: OnToken | None = None,
    setup: Sequence[int] | None = None,
    ranks: Ranks = ALONE,
) -> RowsResult:
    """Runs a request, at most `rows` CTAs at a time on each of the ranks.

    Args:
        on_token: called with the CTAs and tokens of this rank.

    Raises:
        CtaDependenceError: two CTAs changed the same word.
        QgpuError: as `run_share` and `join_shares` do.
    """
    shares = _run_shares(request, engine, rows, max_tokens, on_token, setup, ranks)
    return _join(request, shares, max_tokens)


def _run_shares(
    request: LaunchRequest,
    engine: RowEngine,
    rows: int,
    max_tokens: int,
    on_token: OnToken | None,
    setup: Sequence[int] | None,
    ranks: Ranks,
) -> list[Share]:
    ctas = own_ctas(ranks, request.launch.ctas)
    return ranks.together(
        lambda: run_share(
            request.launch, engine, rows, ctas,
            private=request.private, max_tokens=max_tokens, on_token=on_token, setup=setup,
        )
    )  # fmt: skip


def _join(request: LaunchRequest, shares: Sequence[Share], max_tokens: int) -> RowsResult:
    result = join_shares(request.launch, shares, max_tokens)
    refuse(request, result.conflicts())
    return result


def initial_memory(request: LaunchRequest) -> list[int]:
    """The words of memory before a launch on a fresh machine."""
    words = [0] * request.launch.config.memory_words
    for address, word in request.launch.memory.items():
        words[address] = word
    return words


class RowChecker:
    """Compares decoded tokens with the interpreter's, CTA by CTA; `see` takes each."""

    def __init__(self, request: LaunchRequest, runs: Mapping[int, CtaRun]) -> None:
        self._runs = runs
        self._vocab = vocabulary(request.launch.config)
        self._places = [0] * request.launch.ctas

    def see(self, cta: int, token: int) -> None:
        """Takes the next token of a CTA; raises out of the launch at the first difference."""
        if cta not in self._runs:
            # One after the other it would not have run: one before it faults.
            return
        steps, place = self._runs[cta].steps, self._places[cta]
        step = steps[place] if place < len(steps) else None
        if step is None or self._vocab.encode(step.token) != token:
            before = [str(s.token) for s in steps[max(0, place - CONTEXT_TOKENS) : place]]
            found = token_text(self._vocab.config, token)
            raise Mismatch(Difference(place, step, found, tuple(before)))
        self._places[cta] += 1


def check_rows(
    request: LaunchRequest,
    runs: RunsApart,
    engine: RowEngine,
    rows: int,
    *,
    max_tokens: int = MAX_TOKENS,
    on_token: OnToken | None = None,
    ranks: Ranks = ALONE,
) -> tuple[CheckReport, RowsResult | None]:
    """Runs a launch side by side and compares every token, then the memory put together.

    Args:
        runs: what every CTA does on its own.
        on_token: called with the CTAs and tokens of this rank.

    Raises:
        CtaDependenceError: two CTAs changed the same word.
        ExecutionError: the launch did not end, as the interpreter's did not either.
    """
    checker = RowChecker(request, runs.own)

    def see(cta: int, token: int) -> None:
        checker.see(cta, token)
        if on_token is not None:
            on_token(cta, token)

    shares = _run_shares(request, engine, rows, max_tokens, see, None, ranks)
    agreed = _agreed(shares, len(runs.effects))
    try:
        result = _join(request, shares, max_tokens)
    except Mismatch as mismatch:
        return CheckReport(agreed, mismatch.difference), None
    except KernelFaultError as error:
        return CheckReport(agreed, None, fault=str(error)), None
    initial = initial_memory(request)
    expected = list(initial)
    for run in runs.effects:
        for address, word in run.writes.items():
            if address not in request.private:
                expected[address] = word
    words = memory_differences(expected, result.memory(initial))
    return CheckReport(agreed, None, words, result.trace), result


def _agreed(shares: Sequence[Share], ctas: int) -> int:
    """Tokens of the first CTAs that were compared, without those that differ."""
    compared = sum(len(own) for s in shares for cta, own in s.tokens.items() if cta < ctas)
    failures = [share.failure for share in shares if share.failure is not None]
    return compared - sum(isinstance(failure.error, Mismatch) for failure in failures)
