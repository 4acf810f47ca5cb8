"""Throughput of a launch by the number of its CTAs, all of them side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from qgpu_isa.machine_config import MachineConfig
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.ptx_ast import Module

from qgpu_run.check_rows import guard_rows, run_request_rows
from qgpu_run.engines.engine import RowEngine
from qgpu_run.errors import ModelError
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.lowering import lower_kernel
from qgpu_run.ranks import ALONE, Ranks

SOURCE = """\
extern "C" __global__ void polynomial(const int* x, int* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = 7 * x[i] - 3;
  v ^= v >> 3;
  y[i] = v * v;
}
"""
THREADS = 16
"""Threads of a CTA at most: one element each."""

ARRAYS = 2


@dataclass
class GridTimes:
    """Several runs of a launch.

    Attributes:
        ctas: its CTAs, as many at a time.
        decoded_tokens, setup_tokens: tokens that the model and the host wrote.
        runs: seconds of each run of the whole launch, setup and merging included, the guard not.
        cpu_runs: seconds that all cores spent on each, in all processes.
        guard_runs: seconds that it took to see that CTAs do not depend on each other.
    """

    ctas: int
    decoded_tokens: int = 0
    setup_tokens: int = 0
    runs: list[float] = field(default_factory=list)
    cpu_runs: list[float] = field(default_factory=list)
    guard_runs: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median run."""
        return statistics.median(self.runs)

    @property
    def rate(self) -> float:
        """Decoded tokens a second of the whole launch."""
        return self.decoded_tokens / self.seconds


@dataclass
class GridReport:
    """Launches by CTAs; the first is what the others are compared with."""

    machine: str
    engine: str
    processes: int = 1
    launches: list[GridTimes] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        first = self.launches[0]
        rows = [
            {
                "ctas": times.ctas,
                "decoded_tokens": times.decoded_tokens,
                "setup_tokens": times.setup_tokens,
                "seconds": times.seconds,
                "cpu_seconds": statistics.median(times.cpu_runs),
                "guard_seconds": statistics.median(times.guard_runs),
                "runs": times.runs,
                "tokens_per_second": times.rate,
                # Side by side: of the runs that were made in the same turn.
                "ratio": statistics.median(
                    times.decoded_tokens / own / (first.decoded_tokens / other)
                    for own, other in zip(times.runs, first.runs, strict=True)
                ),
            }
            for times in self.launches
        ]
        return {
            "machine": self.machine,
            "engine": self.engine,
            "processes": self.processes,
            "launches": rows,
        }

    def lines(self) -> Iterator[str]:
        """A table."""
        yield (
            f"{'CTAs':>5}{'decoded':>9}{'setup':>8}{'seconds':>9}{'cpu':>8}{'guard':>8}"
            f"{'a second':>10}{'ratio':>7}"
        )
        for row in self.to_dict()["launches"]:
            yield (
                f"{row['ctas']:5}{row['decoded_tokens']:9}{row['setup_tokens']:8}"
                f"{row['seconds']:9.3f}{row['cpu_seconds']:8.3f}{row['guard_seconds']:8.3f}"
                f"{row['tokens_per_second']:10.0f}{row['ratio']:7.1f}"
            )
        processes = f", {self.processes} processes" if self.processes > 1 else ""
        yield f"machine '{self.machine}', {self.engine}{processes}"


def threads_that_fit(config: MachineConfig, ctas: int) -> int:
    """Threads of each CTA: at most `THREADS`, what a CTA holds, and what memory has room for."""
    room = config.global_words // (ARRAYS * ctas)
    return max(config.lanes, min(THREADS, config.threads, room // config.lanes * config.lanes))


def polynomial_request(
    module: Module, config: MachineConfig, ctas: int, threads: int = THREADS
) -> LaunchRequest:
    """The element-wise kernel of `SOURCE`, compiled, for a number of CTAs.

    Raises:
        MachineLimitError: its arrays do not fit the machine.
    """
    x = [37 * i % 1000 for i in range(threads * ctas)]
    values = [7 * v - 3 for v in x]
    values = [v ^ v >> 3 for v in values]
    args = (
        ArrayArgument("x", "s32", tuple(x)),
        ArrayArgument("y", "s32", (0,) * len(x), output=True),
    )
    expected = {"y": tuple(v * v for v in values)}
    spec = LaunchSpec("polynomial", (ctas, 1, 1), (threads, 1, 1), args, expected)
    return lower_kernel(module, spec, config)


def bench_grid(
    module: Module,
    engine: RowEngine,
    ctas: Sequence[int],
    repeats: int,
    ranks: Ranks = ALONE,
) -> GridReport:
    """Runs the launch with each number of CTAs, in turns, all of them on every rank.

    Raises:
        ModelError: a result is wrong: a wrong engine has no speed.
        MachineLimitError: the arrays do not fit the machine.
    """
    launches = [GridTimes(count) for count in ctas]
    report = GridReport(engine.config.name, engine.name, ranks.size, launches)
    threads = threads_that_fit(engine.config, max(ctas))
    requests = [polynomial_request(module, engine.config, count, threads) for count in ctas]
    for _ in range(repeats):
        for request, times in zip(requests, report.launches, strict=True):
            time_grid(request, engine, times, ranks)
    return report


def time_grid(
    request: LaunchRequest, engine: RowEngine, times: GridTimes, ranks: Ranks = ALONE
) -> None:
    """Runs a launch once and adds it to `times`.

    Raises:
        ModelError: a result is wrong.
    """
    begun = time.perf_counter()
    guard_rows(request, ranks=ranks)
    started, cpu = time.perf_counter(), time.process_time()
    result = run_request_rows(request, engine, times.ctas, ranks=ranks)
    memory = [0] * engine.config.memory_words
    for address, word in request.launch.memory.items():
        memory[address] = word
    outputs = request.read_outputs(result.memory(memory))
    ended, cpu_ended = time.perf_counter(), time.process_time()
    if request.unexpected(outputs):
        raise ModelError(f"engine {engine.name}: {request.unexpected(outputs)[0]}")
    times.decoded_tokens = result.trace.decoded_tokens
    times.setup_tokens = result.trace.setup_tokens
    times.runs.append(ended - started)
    times.cpu_runs.append(sum(ranks.together(lambda: cpu_ended - cpu)))
    times.guard_runs.append(started - begun)
