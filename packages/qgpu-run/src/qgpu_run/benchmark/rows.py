"""The rows of the benchmark: each measures some of the figures.

A row is a function of the `Context`. It gives figures by key, and details of how they came about;
it raises `NotMeasuredError` where the machine has no room for it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from qgpu_isa.interpreter import Launch, run_launch
from qgpu_isa.vocabulary import TokenClass
from qgpu_ptx.lowering_errors import MachineLimitError

from qgpu_run.bench_engines import EngineTimes, first_tokens, time_launch
from qgpu_run.bench_grid import (
    SOURCE,
    GridTimes,
    polynomial_request,
    threads_that_fit,
    time_grid,
)
from qgpu_run.benchmark.child import run_child
from qgpu_run.benchmark.context import Context, NotMeasuredError
from qgpu_run.benchmark.growth import growth
from qgpu_run.benchmark.in_turns import in_turns, ratio
from qgpu_run.engines.engine import Engine
from qgpu_run.errors import ModelError
from qgpu_run.launch import MAX_TOKENS, setup_tokens
from qgpu_run.measure_tokens import TokenReport, measure_kernels
from qgpu_run.verify import teacher_stream

Found = tuple[dict[str, float], dict[str, Any]]
"""Figures by key, and details."""

CTAS = 64
SLOW_TOKENS, QUICK_SLOW_TOKENS = 24, 3
"""Tokens that the unmodified class decodes in a turn; each takes about half a second."""


@dataclass(frozen=True)
class Row:
    """A row: its name on the command line, what it measures in a few words, and how."""

    name: str
    what: str
    measure: Callable[[Context], Found]


def count_tokens(context: Context) -> Found:
    """Decoded tokens of all kernels against the naive format's, on the interpreter."""
    kernels = tuple(measure_kernels(context.counted, context.config, MAX_TOKENS))
    report = TokenReport(context.profile, kernels)
    if report.geomean is None:
        raise NotMeasuredError(f"no kernel fits machine '{context.config.name}'")
    if not report.all_right:
        raise ModelError("a kernel gave a wrong result: see `qgpu-run tokens`")
    details = {
        "kernels": len(report.ratios),
        "decoded_tokens": sum(k.tokens or 0 for k in kernels if k.ratio is not None),
        "naive_tokens": sum(k.baseline_tokens or 0 for k in kernels if k.ratio is not None),
        "best": min(report.ratios),
        "worst": max(report.ratios),
    }
    return {"token_ratio_geomean": report.geomean}, details


def compare_engines(context: Context) -> Found:
    """Decoding and reading of the same launch on both engines, in turns."""
    request = context.timed
    setup = setup_tokens(request.launch, 0)
    slow = first_tokens(request, QUICK_SLOW_TOKENS if context.quick else SLOW_TOKENS)
    fast = first_tokens(request, MAX_TOKENS)
    setups: dict[str, list[float]] = {"transformers": [], "sparse": []}

    def rate(engine: Engine, wanted: list[int]) -> float:
        times = EngineTimes(engine.name, 0.0)
        time_launch(engine, times, setup, wanted, request.kernel)
        setups[engine.name].append(times.setup_rate)
        return times.decode_rate

    plain, sparse = context.transformers, context.sparse
    rates = in_turns(context.repeats, partial(rate, plain, slow), partial(rate, sparse, fast))
    figures = {
        "sparse_over_transformers": ratio(rates[1], rates[0]),
        "transformers_tokens_per_second": median(rates[0]),
        "sparse_tokens_per_second": median(rates[1]),
    }
    details = {
        "kernel": request.kernel,
        "decoded_in_a_turn": {"transformers": len(slow) - 1, "sparse": len(fast) - 1},
        "setup_tokens": len(setup),
        "tokens_per_second": {"transformers": rates[0], "sparse": rates[1]},
        "setup_tokens_per_second": setups,
        "setup_ratio": ratio(setups["sparse"], setups["transformers"]),
    }
    return figures, details


def compare_verifying(context: Context) -> Found:
    """Teacher forcing of a whole launch against decoding its first tokens, on both engines.

    Both rates count tokens that went through the model behind the setup.
    """
    request = context.timed
    stream = teacher_stream(request.launch)
    setup, wanted = setup_tokens(request.launch, 0), first_tokens(request, MAX_TOKENS)

    def decode(engine: Engine, tokens: list[int]) -> float:
        times = EngineTimes(engine.name, 0.0)
        time_launch(engine, times, setup, tokens, request.kernel)
        return times.decode_rate

    def verify(engine: Engine) -> float:
        engine.reset()
        engine.feed(stream.tokens[: len(setup)])
        forced = stream.tokens[len(setup) :]
        started = time.perf_counter()
        predictions = engine.score(forced, 0)
        seconds = time.perf_counter() - started
        if [p.token for p in predictions[: len(wanted) - 1]] != wanted[1:]:
            raise ModelError(f"{request.kernel}: {engine.name} and the interpreter do not agree")
        return len(forced) / seconds

    few = wanted[: QUICK_SLOW_TOKENS if context.quick else SLOW_TOKENS]
    plain, sparse = context.transformers, context.sparse
    found = in_turns(
        context.repeats,
        partial(verify, plain),
        partial(decode, plain, few),
        partial(verify, sparse),
        partial(decode, sparse, wanted),
    )
    figures = {
        "verify_over_decode": ratio(found[0], found[1]),
        "sparse_verify_over_decode": ratio(found[2], found[3]),
    }
    names = ("transformers verify", "transformers decode", "sparse verify", "sparse decode")
    rates = dict(zip(names, found, strict=True))
    return figures, {"kernel": request.kernel, "tokens_per_second": rates}


def compare_batches(context: Context) -> Found:
    """A launch of 64 CTAs side by side against one CTA of it, on the sparse engine."""
    from qgpu.raw_kernel import RawModule

    module, config, sparse = RawModule(SOURCE).ast, context.config, context.sparse
    threads = threads_that_fit(config, CTAS)
    try:
        requests = [polynomial_request(module, config, n, threads) for n in (1, CTAS)]
    except MachineLimitError as error:
        raise NotMeasuredError(error.message) from None
    launches = [GridTimes(1), GridTimes(CTAS)]

    def run(index: int) -> float:
        time_grid(requests[index], sparse, launches[index])
        return launches[index].decoded_tokens / launches[index].runs[-1]

    # One CTA takes a tenth of a second: the first run only warms up.
    in_turns(1, partial(run, 0), partial(run, 1))
    rates = in_turns(max(3, context.repeats), partial(run, 0), partial(run, 1))
    counts = [count_instructions(request.launch) for request in requests]
    executed = [
        rate * count / times.decoded_tokens
        for rate, count, times in zip(map(median, rates), counts, launches, strict=True)
    ]
    figures = {
        "batch64_over_1": ratio(rates[1], rates[0]),
        "batch64_tokens_per_second": median(rates[1]),
        "batch1_tokens_per_second": median(rates[0]),
        "instructions_per_second": executed[1],
        "batch1_instructions_per_second": executed[0],
    }
    details = {
        "threads": threads,
        "decoded_tokens": [times.decoded_tokens for times in launches],
        "setup_tokens": [times.setup_tokens for times in launches],
        "thread_instructions": counts,
        "tokens_per_second": rates,
    }
    return figures, details


def count_instructions(launch: Launch) -> int:
    """Machine instructions of a launch: each counts once for every thread that executes it."""
    _, steps = run_launch(launch)
    blocks, total, cta = launch.image.blocks, 0, -1
    for step in steps:
        if step.cta != cta or step.token.cls is TokenClass.EXEC:
            cta = step.cta
            total += len(blocks[step.block].slots) * step.mask.bit_count()
    return total


def time_emit(context: Context) -> Found:
    """`qgpu-circuit emit`, a process of its own."""
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for index in range(1 if context.quick else max(1, context.repeats - 1)):
            target = str(Path(folder, str(index)))
            arguments = ["emit", "--profile", context.profile, "-o", target, "--quiet"]
            runs.append(run_child("qgpu_circuit.cli", arguments))
    figures = {
        "emit_seconds": median(run.seconds for run in runs),
        "emit_peak_bytes": float(max(run.peak_bytes for run in runs)),
    }
    return figures, {"runs": [run.seconds for run in runs]}


def time_compile(context: Context) -> Found:
    """CUDA source to an image in a process that has compiled another kernel before."""
    count = str(3 if context.quick else 9)
    output = run_child("qgpu_run.benchmark.compile_once", [context.profile, count]).output
    if output["torch_imported"]:
        raise ModelError("compiling a kernel imports torch")
    return {"cu_to_image_ms": 1000 * median(output["runs"])}, output


def time_launch_start(context: Context) -> Found:
    """One launch on the sparse engine, a process of its own, with everything in the cache."""
    arguments = [str(context.checkpoint), str(context.launched)]
    # The first one may still have to fill the cache.
    run_child("qgpu_run.benchmark.launch_once", arguments)
    runs = [
        run_child("qgpu_run.benchmark.launch_once", arguments)
        for _ in range(1 if context.quick else max(3, context.repeats))
    ]
    if not all(run.output["right"] for run in runs):
        raise ModelError(f"{context.launched}: a result is not as expected")
    firsts = [run.output["first_token_at"] - run.started for run in runs]
    loads = [run.output["load_seconds"] for run in runs]
    figures = {
        "load_seconds": median(loads),
        "first_token_seconds": median(firsts),
        "peak_bytes": float(max(run.peak_bytes for run in runs)),
    }
    details = {
        "kernel": context.launched.stem,
        "load": loads,
        "first_token": firsts,
        "whole_launch": [run.seconds for run in runs],
        "torch_imported": runs[0].output["torch_imported"],
    }
    return figures, details


def measure_growth(context: Context) -> Found:
    """Launches of growing size on the sparse engine."""
    return growth(context)


ROWS = (
    Row("tokens", "tokens of all kernels against the naive format", count_tokens),
    Row("emit", "the circuit compiler", time_emit),
    Row("compile", "CUDA source to an image", time_compile),
    Row("start", "loading, the first token, memory", time_launch_start),
    Row("batch", "64 CTAs side by side against one", compare_batches),
    Row("growth", "cost by elements, CTAs and length of the program", measure_growth),
    Row("engines", "the sparse engine against the unmodified class", compare_engines),
    Row("verify", "teacher forcing against decoding", compare_verifying),
)
"""In the order in which they run: processes of their own before models are loaded."""
