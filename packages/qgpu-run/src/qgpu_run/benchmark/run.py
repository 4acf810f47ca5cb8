"""Runs the rows of the benchmark, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from qgpu_run.benchmark.context import Context, NotMeasuredError
from qgpu_run.benchmark.host import describe_host, load_average
from qgpu_run.benchmark.record import BenchRecord
from qgpu_run.benchmark.rows import ROWS


def run_benchmark(
    context: Context, only: Collection[str], say: Callable[[str], None]
) -> BenchRecord:
    """Measures the rows named, all if none is.

    Args:
        say: is told what happens.

    Raises:
        ModelError: an engine is wrong: a wrong engine has no speed.
    """
    record = BenchRecord(context.profile, context.quick, context.repeats, describe_host())
    record.load_average.append(load_average())
    started = time.perf_counter()
    rows = [row for row in ROWS if not only or row.name in only]
    for number, row in enumerate(rows, 1):
        say(f"{number}/{len(rows)} {row.name}: {row.what}")
        try:
            figures, details = row.measure(context)
        except NotMeasuredError as reason:
            record.skipped[row.name] = str(reason)
            continue
        record.figures |= figures
        record.details[row.name] = details
    record.seconds = time.perf_counter() - started
    record.load_average.append(load_average())
    return record
