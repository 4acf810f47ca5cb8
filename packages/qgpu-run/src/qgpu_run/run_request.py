"""Runs a launch request with the comparisons that were asked for."""

from __future__ import annotations

import time

from qgpu_isa.errors import ExecutionError
from qgpu_isa.interpreter import run_ctas_apart

from qgpu_run.check import CheckReport, check_launch, describe_difference, describe_words
from qgpu_run.check_rows import check_rows, guard_rows, initial_memory, run_request_rows
from qgpu_run.engines.engine import Engine, RowEngine
from qgpu_run.errors import RequestError
from qgpu_run.launch import MAX_TOKENS, LaunchTrace, OnToken, run_on_engine
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.outcome import Outcome
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
    speculate: int = 0,
    max_tokens: int = MAX_TOKENS,
    on_token: OnToken | None = None,
) -> Outcome:
    """Runs a request; what goes wrong in the launch itself is in the outcome.

    With `verify` alone nothing is decoded step by step: the outputs are read after the
    teacher-forced pass.

    Args:
        sms: CTAs that run at a time; each then starts from the memory that the host wrote.
        assume_independent: does not look first whether they may.
        speculate: tokens that the host proposes at a time for the weights to judge.

    Raises:
        RequestError: the engine is another machine, or cannot do this.
    """
    if sms > 1 and verify:
        raise RequestError("--verify reads a launch as one stream: it takes no --sms")
    if speculate and (verify or sms > 1):
        raise RequestError("--speculate decodes one stream: it takes no --verify and no --sms")
    spoken = SpeculatingEngine(engine, draft_tokens=speculate) if speculate else None
    engine = spoken or engine
    outcome = Outcome(request.kernel, request.launch.config.name, engine.name, sms=sms)
    started = time.monotonic()
    try:
        if sms > 1:
            _run_side_by_side(
                request, engine, outcome, check, assume_independent, max_tokens, on_token
            )
        elif check:
            _check(request, engine, outcome, max_tokens, on_token)
        elif not verify:
            trace = run_on_engine(request.launch, engine, max_tokens=max_tokens, on_token=on_token)
            _take_trace(outcome, trace)
            _read(request, outcome, engine.read_memory())
        if check or not verify:
            outcome.seconds = time.monotonic() - started
        if verify:
            _verify(request, engine, outcome, max_tokens)
            if not check:
                outcome.seconds = time.monotonic() - started
    except ExecutionError as error:
        outcome.seconds = time.monotonic() - started
        outcome.fail(str(error))
    if spoken is not None:
        outcome.speculation = spoken.speculation
    return outcome


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
    report = check_launch(request.launch, engine, max_tokens=max_tokens, on_token=on_token)
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
) -> None:
    if not isinstance(engine, RowEngine):
        raise RequestError(f"engine {engine.name} runs CTAs one after the other")
    started = time.monotonic()
    runs = None
    if not assume_independent:
        runs = guard_rows(request, max_tokens)
        outcome.guard_seconds = time.monotonic() - started
    if check:
        outcome.checks.append("check")
        runs = runs or run_ctas_apart(request.launch, max_tokens)
        report, result = check_rows(
            request, runs, engine, outcome.sms, max_tokens=max_tokens, on_token=on_token
        )
        _take_report(request, outcome, report)
    else:
        result = run_request_rows(
            request, engine, outcome.sms, max_tokens=max_tokens, on_token=on_token
        )
        _take_trace(outcome, result.trace)
    if result is not None:
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
