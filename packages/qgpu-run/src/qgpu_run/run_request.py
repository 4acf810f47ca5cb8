"""Runs a launch request with the comparisons that were asked for."""

from __future__ import annotations

import time
from typing import Any

from qgpu_isa.errors import ExecutionError

from qgpu_run.check import CheckReport, check_launch, describe_difference, describe_words
from qgpu_run.check_rows import (
    check_rows,
    guard_rows,
    initial_memory,
    run_request_rows,
    run_rows_apart,
)
from qgpu_run.engines.engine import Engine, RowEngine, reads_memory
from qgpu_run.engines.read_back_engine import ReadBackEngine
from qgpu_run.engines.server_engine import ServerEngine
from qgpu_run.errors import RequestError
from qgpu_run.launch import MAX_TOKENS, LaunchTrace, OnToken, run_on_engine
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.outcome import Outcome, rank_shares
from qgpu_run.ranks import ALONE, Ranks
from qgpu_run.speculate import SpeculatingEngine
from qgpu_run.verify import verify_launch


def run_request(
    request: LaunchRequest,
    engine: Engine,
    *,
    check: bool = False,
    verify: bool = False,
    sms: int = 1,
    assume_independent: bool = False,
    read_back: bool = False,
    speculate: int = 0,
    max_tokens: int = MAX_TOKENS,
    on_token: OnToken | None = None,
    ranks: Ranks = ALONE,
) -> Outcome:
    """Runs a request; what goes wrong in the launch itself is in the outcome.

    With `verify` alone nothing is decoded step by step: the outputs are read after the
    teacher-forced pass.

    On several ranks, all call this with the same request and options, each with an engine of its
    own, and all get the same outcome; what it says of times is the caller's own.

    Args:
        sms: CTAs that run at a time; each then starts from the memory that the host wrote.
        assume_independent: does not look first whether they may.
        read_back: has the engine write out the results as tokens, as it is with an engine that
            only exchanges tokens; `check` then compares these words alone.
        speculate: tokens that the host proposes at a time for the weights to judge.
        on_token: called with the CTAs and tokens of this rank.

    Raises:
        RequestError: the engine is another machine, or cannot do this.
        RankError: another rank failed or was lost.
    """
    side_by_side = sms > 1 or ranks.size > 1
    as_tokens = read_back or not reads_memory(engine)
    refuse_together(side_by_side, as_tokens=as_tokens, verify=verify, speculate=bool(speculate))
    if as_tokens:
        engine = ReadBackEngine(engine)
    spoken = SpeculatingEngine(engine, draft_tokens=speculate) if speculate else None
    engine = spoken or engine
    outcome = Outcome(request.kernel, request.launch.config.name, engine.name, sms=sms)
    started = time.monotonic()
    try:
        if side_by_side:
            _run_side_by_side(
                request, engine, outcome, check, assume_independent, max_tokens, on_token, ranks
            )
        elif check:
            _check(request, engine, outcome, max_tokens, on_token)
        elif not verify:
            trace = run_on_engine(request.launch, engine, max_tokens=max_tokens, on_token=on_token)
            _take_trace(outcome, trace)
            _read(request, outcome, read_memory(request, engine))
        if check or not verify:
            outcome.seconds = time.monotonic() - started
        if verify:
            _verify(request, engine, outcome, max_tokens)
            if not check:
                outcome.seconds = time.monotonic() - started
    except ExecutionError as error:
        outcome.seconds = time.monotonic() - started
        outcome.fail(str(error))
    _take_counts(engine, outcome)
    if spoken is not None:
        outcome.speculation = spoken.speculation
    return outcome


def refuse_together(side_by_side: bool, *, as_tokens: bool, verify: bool, speculate: bool) -> None:
    """Refuses options that do not go together.

    Args:
        side_by_side: CTAs run in several rows or processes.
        as_tokens: results come as tokens.

    Raises:
        RequestError: says which.
    """
    if side_by_side and verify:
        raise RequestError(
            "--verify reads a launch as one stream: it takes no --sms and no second process"
        )
    if speculate and (verify or side_by_side):
        raise RequestError(
            "--speculate decodes one stream: it takes no --verify, no --sms and no second process"
        )
    if as_tokens and (side_by_side or verify or speculate):
        raise RequestError(
            "reading results back as tokens goes without --sms, --verify, --speculate and a "
            "second process"
        )


def read_memory(request: LaunchRequest, engine: Engine) -> list[int]:
    """The words of memory behind a launch; read back as tokens, those of its outputs alone."""
    if isinstance(engine, ReadBackEngine):
        return _in_place(engine, _read_outputs(request, engine))
    return engine.read_memory()


def _read_outputs(request: LaunchRequest, engine: ReadBackEngine) -> dict[int, int]:
    return engine.read_words([output.words for output in request.outputs])


def _in_place(engine: ReadBackEngine, words: dict[int, int]) -> list[int]:
    return [words.get(address, 0) for address in range(engine.config.memory_words)]


def _take_counts(engine: Engine, outcome: Outcome) -> None:
    if isinstance(engine, ReadBackEngine):
        outcome.read_back_tokens, outcome.read_back_setup_tokens = engine.decoded, engine.setup
        if isinstance(engine.engine, ServerEngine):
            outcome.requests = engine.engine.requests
            outcome.prompt_tokens = engine.engine.prompt_tokens


def _take_trace(outcome: Outcome, trace: LaunchTrace) -> None:
    outcome.tokens = trace.decoded_tokens
    outcome.setup_tokens = trace.setup_tokens
    outcome.see_margin(trace.min_margin)


def _read(request: LaunchRequest, outcome: Outcome, memory: list[int]) -> None:
    outcome.outputs = request.read_outputs(memory)
    if request.expected:
        wrong = request.unexpected(outcome.outputs)
        outcome.expected_ok = not wrong
        for line in wrong:
            outcome.fail(line)


def _check(
    request: LaunchRequest,
    engine: Engine,
    outcome: Outcome,
    max_tokens: int,
    on_token: OnToken | None,
) -> None:
    outcome.checks.append("check")
    options: dict[str, Any] = {"max_tokens": max_tokens, "on_token": on_token}
    if isinstance(engine, ReadBackEngine):
        words: dict[int, int] = {}
        back = engine

        def read() -> dict[int, int]:
            words.update(_read_outputs(request, back))
            return words

        report = check_launch(request.launch, engine, read=read, **options)
        if _take_report(request, outcome, report):
            _read(request, outcome, _in_place(engine, words))
        return
    report = check_launch(request.launch, engine, **options)
    if _take_report(request, outcome, report):
        _read(request, outcome, engine.read_memory())


def _take_report(request: LaunchRequest, outcome: Outcome, report: CheckReport) -> bool:
    """Whether there are results to read."""
    outcome.exact = report.exact
    outcome.tokens = report.tokens
    if report.difference is not None:
        outcome.fail(describe_difference(request.launch, report.difference))
        return False
    if report.words:
        outcome.fail(describe_words(report.words))
    if report.fault is not None:
        outcome.fail(report.fault)
    if report.trace is not None:
        _take_trace(outcome, report.trace)
    return report.trace is not None


def _run_side_by_side(
    request: LaunchRequest,
    engine: Engine,
    outcome: Outcome,
    check: bool,
    assume_independent: bool,
    max_tokens: int,
    on_token: OnToken | None,
    ranks: Ranks,
) -> None:
    if not isinstance(engine, RowEngine):
        raise RequestError(f"engine {engine.name} runs CTAs one after the other")
    outcome.processes = ranks.size
    started = time.monotonic()
    runs = None
    if not assume_independent:
        runs = guard_rows(request, max_tokens, ranks)
        outcome.guard_seconds = time.monotonic() - started
    options: dict[str, Any] = {"max_tokens": max_tokens, "on_token": on_token, "ranks": ranks}
    if check:
        outcome.checks.append("check")
        runs = runs or run_rows_apart(request, max_tokens, ranks)
        report, result = check_rows(request, runs, engine, outcome.sms, **options)
        _take_report(request, outcome, report)
    else:
        result = run_request_rows(request, engine, outcome.sms, **options)
        _take_trace(outcome, result.trace)
    if result is not None:
        if ranks.size > 1:
            outcome.ranks = rank_shares(result.shares)
        _read(request, outcome, result.memory(initial_memory(request)))


def _verify(request: LaunchRequest, engine: Engine, outcome: Outcome, max_tokens: int) -> None:
    outcome.checks.append("verify")
    report = verify_launch(request.launch, engine, max_tokens=max_tokens)
    outcome.exact = report.exact and outcome.exact is not False
    outcome.see_margin(report.min_margin)
    if report.first is not None:
        outcome.fail(
            f"verify: {report.differences} of {report.positions} tokens differ; the first:\n"
            + describe_difference(request.launch, report.first)
        )
    elif report.words:
        outcome.fail(describe_words(report.words))
    if "check" not in outcome.checks:
        outcome.tokens = report.positions
        outcome.setup_tokens = report.setup_tokens
        if report.fault is not None:
            outcome.fail(report.fault)
        elif report.exact:
            _read(request, outcome, list(report.memory))
