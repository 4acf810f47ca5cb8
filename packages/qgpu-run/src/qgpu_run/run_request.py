"""Runs a launch request with the comparisons that were asked for."""

from __future__ import annotations

import time

from qgpu_isa.errors import ExecutionError

from qgpu_run.check import check_launch, describe_difference, describe_words
from qgpu_run.engines.engine import Engine
from qgpu_run.launch import MAX_TOKENS, LaunchTrace, OnToken, run_on_engine
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.outcome import Outcome
from qgpu_run.verify import verify_launch


def run_request(
    request: LaunchRequest,
    engine: Engine,
    *,
    check: bool = False,
    verify: bool = False,
    max_tokens: int = MAX_TOKENS,
    on_token: OnToken | None = None,
) -> Outcome:
    """Runs a request; what goes wrong in the launch itself is in the outcome.

    With `verify` alone nothing is decoded step by step: the outputs are read after the
    teacher-forced pass.

    Raises:
        RequestError: the engine is another machine.
    """
    outcome = Outcome(request.kernel, request.launch.config.name, engine.name)
    started = time.monotonic()
    try:
        if check:
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
    outcome.exact = report.exact
    outcome.tokens = report.tokens
    if report.difference is not None:
        outcome.fail(describe_difference(request.launch, report.difference))
        return
    if report.words:
        outcome.fail(describe_words(report.words))
    if report.fault is not None:
        outcome.fail(report.fault)
    if report.trace is not None:
        _take_trace(outcome, report.trace)
        _read(request, outcome, engine.read_memory())


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
