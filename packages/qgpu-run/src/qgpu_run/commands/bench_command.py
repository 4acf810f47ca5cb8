"""`qgpu-run bench`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from qgpu_isa.files import write_text

from qgpu_run.benchmark.context import Context
from qgpu_run.benchmark.plot import SUFFIXES, plot
from qgpu_run.benchmark.record import table_lines
from qgpu_run.benchmark.rows import ROWS
from qgpu_run.benchmark.run import run_benchmark
from qgpu_run.errors import RequestError
from qgpu_run.open_engine import (
    DEFAULT_PROFILE,
    EngineChoice,
    json_option,
    model_option,
    profile_option,
)

REPEATS = 3

EPILOG = "\b\nRows:\n" + "\n".join(f"  {row.name:9}{row.what}" for row in ROWS)


@click.command(epilog=EPILOG)
@profile_option()
@model_option()
@click.option(
    "--only",
    multiple=True,
    type=click.Choice([row.name for row in ROWS]),
    help="A row to measure; repeat it. Default: all.",
)
@click.option("--quick", is_flag=True, help="Machine small, one repeat, few kernels and sizes.")
@click.option(
    "--repeats", type=click.IntRange(1), help=f"Turns of what is compared; default: {REPEATS}."
)
@click.option(
    "--kernels",
    type=click.Path(path_type=Path),
    default=Path("kernels"),
    show_default=True,
    help="The project's folder of kernels.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="JSON file to write as well.")
@click.option(
    "--plot",
    "picture",
    type=click.Path(path_type=Path),
    help=f"Picture to draw ({', '.join(SUFFIXES)}); needs matplotlib.",
)
@json_option()
def command(
    profile: str | None,
    model: Path | None,
    only: tuple[str, ...],
    quick: bool,
    repeats: int | None,
    kernels: Path,
    output: Path | None,
    picture: Path | None,
    as_json: bool,
) -> int:
    """Measure token counts, speeds, start-up and memory; ratios are taken side by side.

    What is compared runs in turns, and medians are given. Every engine must decode what the
    interpreter does. On the default machine this takes some minutes.
    """
    if profile is None and model is None:
        profile = "small" if quick else DEFAULT_PROFILE
    config = EngineChoice("sparse", profile, model).machine()
    for row_name, file in (("the output", output), ("the picture", picture)):
        if file is not None and not file.parent.is_dir():
            raise RequestError(f"there is no folder {file.parent} for {row_name}")
    if picture is not None and picture.suffix not in SUFFIXES:
        raise RequestError(f"{picture}: a plot is one of {', '.join(SUFFIXES)}")
    context = Context(
        config, profile or config.name, model, kernels, quick, repeats or (1 if quick else REPEATS)
    )
    record = run_benchmark(context, only, lambda text: click.echo(text, err=True)).to_dict()
    if output is not None:
        write_text(output, json.dumps(record, indent=1) + "\n")
    if picture is not None:
        plot(record, picture)
    click.echo(json.dumps(record) if as_json else "\n".join(table_lines(record)))
    return 0
