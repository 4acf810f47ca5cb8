"""`qgpu-run scale`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qgpu_run.bench_grid import SOURCE, bench_grid
from qgpu_run.engines.engine import RowEngine
from qgpu_run.errors import RequestError
from qgpu_run.open_engine import (
    EngineChoice,
    engine_option,
    json_option,
    model_option,
    profile_option,
)
from qgpu_run.progress import Progress


@click.command()
@click.option(
    "--ctas",
    type=click.IntRange(1),
    multiple=True,
    default=(1, 4, 16, 64),
    show_default=True,
    help="Numbers of CTAs, the first compared with the others; repeat it.",
)
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True)
@profile_option()
@model_option()
@engine_option()
@json_option()
def command(
    ctas: tuple[int, ...],
    repeats: int,
    profile: str | None,
    model: Path | None,
    engine: str,
    as_json: bool,
) -> int:
    """Measure the throughput of an element-wise kernel by the number of its CTAs.

    All CTAs of a launch run side by side, as with `launch --sms`. Counted are decoded tokens; the
    median of --repeats runs is shown, taken in turns, and results must be right.
    """
    from qgpu.raw_kernel import RawModule

    choice = EngineChoice(engine, profile, model)
    made = choice.open(choice.machine(), Progress())
    if not isinstance(made, RowEngine):
        raise RequestError(f"engine {engine} runs CTAs one after the other")
    report = bench_grid(RawModule(SOURCE).ast, made, ctas, repeats)
    click.echo(json.dumps(report.to_dict()) if as_json else "\n".join(report.lines()))
    return 0
