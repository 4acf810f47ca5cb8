"""How the cost of a launch grows with its elements, its CTAs and the length of its program."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from qgpu_isa.machine_config import MachineConfig
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lowering_errors import MachineLimitError
from qgpu_ptx.ptx_ast import Module

from qgpu_run.bench_grid import SOURCE, polynomial_request
from qgpu_run.benchmark.in_turns import in_turns
from qgpu_run.check_rows import run_request_rows
from qgpu_run.engines.engine import RowEngine
from qgpu_run.errors import ModelError
from qgpu_run.launch import run_on_engine
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.lowering import lower_kernel

if TYPE_CHECKING:
    from qgpu_run.benchmark.context import Context

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
GRID_THREADS = 8
"""Threads of a CTA where the number of CTAs grows."""

MODULUS = 1 << 32


@dataclass
class Point:
    """A launch of one size: tokens, and seconds of each run."""

    size: int
    decoded_tokens: int = 0
    setup_tokens: int = 0
    runs: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median run; the first, which may have to compile, does not count."""
        return median(self.runs[1:])


def growth(context: Context) -> tuple[dict[str, float], dict[str, Any]]:
    """Figures and details of all sweeps, the sizes of each in turns."""
    from qgpu.raw_kernel import RawModule

    config, engine = context.config, context.sparse
    polynomial = RawModule(SOURCE).ast
    threads = min(GRID_THREADS, config.threads)
    sweeps: dict[str, tuple[Callable[[int], LaunchRequest], bool]] = {
        "growth_elements": (lambda n: polynomial_request(polynomial, config, 1, n), False),
        "growth_ctas": (lambda n: polynomial_request(polynomial, config, n, threads), False),
        "growth_ctas_side_by_side": (
            lambda n: polynomial_request(polynomial, config, n, threads),
            True,
        ),
        "growth_program": (lambda n: statements_request(config, n), False),
    }
    figures: dict[str, float] = {}
    details: dict[str, Any] = {}
    for name, (make, side_by_side) in sweeps.items():
        requests = _that_fit(make, SIZES[:3] if context.quick else SIZES)
        points = [Point(size) for size, _ in requests]
        runs = [
            partial(_run, request, engine, point, side_by_side)
            for (_, request), point in zip(requests, points, strict=True)
        ]
        in_turns(1 + max(2, context.repeats), *runs)
        sizes = [point.size for point in points]
        figures[name] = exponent(sizes, [point.seconds for point in points])
        details[name] = {
            "sizes": sizes,
            "decoded_tokens": [point.decoded_tokens for point in points],
            "setup_tokens": [point.setup_tokens for point in points],
            "seconds": [point.seconds for point in points],
            "exponent_of_tokens": exponent(sizes, [point.decoded_tokens for point in points]),
        }
    return figures, details


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """b of the line log(cost) = a + b log(size) that fits best: 1 is proportional."""
    x, y = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    if len(x) < 2:
        return math.nan
    mean_x, mean_y = fmean(x), fmean(y)
    over = sum((u - mean_x) * (v - mean_y) for u, v in zip(x, y, strict=True))
    return over / sum((u - mean_x) ** 2 for u in x)


def statements_request(config: MachineConfig, statements: int) -> LaunchRequest:
    """A kernel of as many statements in a row, which no compiler can make fewer."""
    lines = "\n".join(f"  v = (v ^ {3 * k + 5}) * (v + i);" for k in range(statements))
    source = (
        'extern "C" __global__ void statements(unsigned* y) {\n'
        f"  unsigned i = threadIdx.x;\n  unsigned v = i;\n{lines}\n  y[i] = v;\n}}\n"
    )
    threads = config.lanes
    values = []
    for i in range(threads):
        v = i
        for k in range(statements):
            v = (v ^ 3 * k + 5) * (v + i) % MODULUS
        values.append(v)
    args = (ArrayArgument("y", "u32", (0,) * threads, output=True),)
    spec = LaunchSpec("statements", (1, 1, 1), (threads, 1, 1), args, {"y": tuple(values)})
    return lower_kernel(_compile(source), spec, config)


def _compile(source: str) -> Module:
    from qgpu.raw_kernel import RawModule

    return RawModule(source).ast


def _that_fit(
    make: Callable[[int], LaunchRequest], sizes: Sequence[int]
) -> list[tuple[int, LaunchRequest]]:
    found = []
    for size in sizes:
        try:
            found.append((size, make(size)))
        except MachineLimitError:
            break
    return found


def _run(request: LaunchRequest, engine: Any, point: Point, side_by_side: bool) -> float:
    started = time.perf_counter()
    memory = [0] * engine.config.memory_words
    if side_by_side:
        assert isinstance(engine, RowEngine)
        result = run_request_rows(request, engine, point.size)
        trace = result.trace
        for address, word in request.launch.memory.items():
            memory[address] = word
        memory = result.memory(memory)
    else:
        trace = run_on_engine(request.launch, engine)
        memory = engine.read_memory()
    point.runs.append(time.perf_counter() - started)
    wrong = request.unexpected(request.read_outputs(memory))
    if wrong:
        raise ModelError(f"{request.kernel} with size {point.size}: {wrong[0]}")
    point.decoded_tokens, point.setup_tokens = trace.decoded_tokens, trace.setup_tokens
    return point.runs[-1]
