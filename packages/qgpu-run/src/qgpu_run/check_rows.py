"""CTAs side by side: whether they may be, and every token against the reference interpreter.

The reference interpreter runs each CTA from the memory that the host wrote, and notes which words
it reads and writes. That is a guard: it decides whether the launch runs at all, never a value.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgpu_isa.interpreter import CtaRun, Dependence, dependences, run_ctas_apart
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
from qgpu_run.run_rows import RowsResult, run_on_rows


def guard_rows(request: LaunchRequest, max_tokens: int = MAX_TOKENS) -> list[CtaRun]:
    """What every CTA does on its own.

    Raises:
        CtaDependenceError: a CTA reads or writes a word that an earlier one writes.
        ExecutionError: they decode more than `max_tokens` tokens.
    """
    runs = run_ctas_apart(request.launch, max_tokens)
    refuse(request, dependences(runs, request.private))
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
) -> RowsResult:
    """`run_on_rows` of a request.

    Raises:
        CtaDependenceError: two CTAs changed the same word.
        QgpuError: as `run_on_rows` does.
    """
    result = run_on_rows(
        request.launch, engine, rows,
        private=request.private, max_tokens=max_tokens, on_token=on_token, setup=setup,
    )  # fmt: skip
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

    def __init__(self, request: LaunchRequest, runs: Sequence[CtaRun]) -> None:
        self.seen = 0
        self._runs = runs
        self._vocab = vocabulary(request.launch.config)
        self._places = [0] * request.launch.ctas

    def see(self, cta: int, token: int) -> None:
        """Takes the next token of a CTA; raises out of the launch at the first difference."""
        if cta >= len(self._runs):
            # One after the other it would not have run: one before it faults.
            return
        steps, place = self._runs[cta].steps, self._places[cta]
        step = steps[place] if place < len(steps) else None
        if step is None or self._vocab.encode(step.token) != token:
            before = [str(s.token) for s in steps[max(0, place - CONTEXT_TOKENS) : place]]
            found = token_text(self._vocab.config, token)
            raise Mismatch(Difference(place, step, found, tuple(before)))
        self._places[cta] += 1
        self.seen += 1


def check_rows(
    request: LaunchRequest,
    runs: Sequence[CtaRun],
    engine: RowEngine,
    rows: int,
    *,
    max_tokens: int = MAX_TOKENS,
    on_token: OnToken | None = None,
) -> tuple[CheckReport, RowsResult | None]:
    """Runs a launch side by side and compares every token, then the memory put together.

    Args:
        runs: what every CTA does on its own.

    Raises:
        CtaDependenceError: two CTAs changed the same word.
        ExecutionError: the launch did not end, as the interpreter's did not either.
    """
    checker = RowChecker(request, runs)

    def see(cta: int, token: int) -> None:
        checker.see(cta, token)
        if on_token is not None:
            on_token(cta, token)

    try:
        result = run_request_rows(request, engine, rows, max_tokens=max_tokens, on_token=see)
    except Mismatch as mismatch:
        return CheckReport(checker.seen, mismatch.difference), None
    except KernelFaultError as error:
        return CheckReport(checker.seen, None, fault=str(error)), None
    initial = initial_memory(request)
    expected = list(initial)
    for run in runs:
        for address, word in run.writes.items():
            if address not in request.private:
                expected[address] = word
    words = memory_differences(expected, result.memory(initial))
    return CheckReport(checker.seen, None, words, result.trace), result
