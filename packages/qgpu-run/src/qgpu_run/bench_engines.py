"""Speeds of engines on the same launches, taken in turns in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from qgpu_isa.interpreter import run_launch
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary

from qgpu_run.engines.engine import Engine
from qgpu_run.errors import ModelError
from qgpu_run.launch import setup_tokens
from qgpu_run.launch_request import LaunchRequest


@dataclass
class EngineTimes:
    """What one engine took.

    Attributes:
        load_seconds: from the checkpoint on disk to the first token that can be read.
        setup_tokens, setup_seconds: setup records of all launches, read at once.
        decoded_tokens, decode_seconds: tokens decoded one by one, of the first CTA of each launch.
    """

    engine: str
    load_seconds: float
    setup_tokens: int = 0
    setup_seconds: float = 0.0
    decoded_tokens: int = 0
    decode_seconds: float = 0.0

    @property
    def decode_rate(self) -> float:
        """Tokens decoded a second."""
        return self.decoded_tokens / self.decode_seconds if self.decode_seconds else 0.0

    @property
    def setup_rate(self) -> float:
        """Setup tokens read a second."""
        return self.setup_tokens / self.setup_seconds if self.setup_seconds else 0.0


@dataclass
class BenchReport:
    """All engines on all launches; the first engine is what the others are compared with."""

    machine: str
    kernels: list[str]
    engines: list[EngineTimes] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        first = self.engines[0]
        rows = []
        for times in self.engines:
            row = asdict(times)
            row["decode_tokens_per_second"] = times.decode_rate
            row["setup_tokens_per_second"] = times.setup_rate
            row["decode_ratio"] = times.decode_rate / first.decode_rate
            row["setup_ratio"] = times.setup_rate / first.setup_rate
            rows.append(row)
        return {"machine": self.machine, "kernels": self.kernels, "engines": rows}

    def lines(self) -> Iterator[str]:
        """A table."""
        yield (
            f"{'engine':14}{'load':>9}{'decoded':>10}{'a second':>10}{'ratio':>8}"
            f"{'setup':>10}{'a second':>10}{'ratio':>8}"
        )
        for row in self.to_dict()["engines"]:
            yield (
                f"{row['engine']:14}{row['load_seconds']:7.1f} s{row['decoded_tokens']:10}"
                f"{row['decode_tokens_per_second']:10.1f}{row['decode_ratio']:8.1f}"
                f"{row['setup_tokens']:10}{row['setup_tokens_per_second']:10.1f}"
                f"{row['setup_ratio']:8.1f}"
            )
        yield f"machine '{self.machine}', {len(self.kernels)} launches"


def bench_engines(
    requests: Sequence[LaunchRequest],
    makers: Sequence[Callable[[], Engine]],
    decode_limit: int,
) -> BenchReport:
    """Runs every launch on every engine in turn, at most `decode_limit` tokens of each.

    Raises:
        ModelError: an engine decodes another token than the interpreter: a wrong engine has no
            speed.
    """
    engines = []
    report = BenchReport(requests[0].launch.config.name, [r.kernel for r in requests])
    for make in makers:
        started = time.perf_counter()
        engine = make()
        engine.feed([vocabulary(engine.config).encode(Token(TokenClass.END))])
        engines.append(engine)
        report.engines.append(EngineTimes(engine.name, time.perf_counter() - started))
    for request in requests:
        wanted = first_tokens(request, decode_limit)
        setup = setup_tokens(request.launch, 0)
        for engine, times in zip(engines, report.engines, strict=True):
            time_launch(engine, times, setup, wanted, request.kernel)
    return report


def first_tokens(request: LaunchRequest, limit: int) -> list[int]:
    """What the interpreter decodes first of CTA 0."""
    encode = vocabulary(request.launch.config).encode
    _, steps = run_launch(request.launch)
    return [encode(step.token) for step in steps if step.cta == 0][:limit]


def time_launch(
    engine: Engine, times: EngineTimes, setup: list[int], wanted: list[int], kernel: str
) -> None:
    """Reads a launch's setup and decodes its first tokens; adds both to `times`.

    Raises:
        ModelError: the engine decodes something else.
    """
    engine.reset()
    started = time.perf_counter()
    token = engine.feed(setup).token
    read = time.perf_counter()
    for index, expected in enumerate(wanted):
        if index:
            token = engine.feed([token]).token
        if token != expected:
            raise ModelError(f"{kernel}: engine {engine.name} and the interpreter do not agree")
    ended = time.perf_counter()
    times.setup_tokens += len(setup)
    times.setup_seconds += read - started
    # The first decoded token comes with the setup.
    times.decoded_tokens += len(wanted) - 1
    times.decode_seconds += ended - read
