"""`qgpu-run engines`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from qgpu_isa.machine_config import NANO
from qgpu_ptx.launch_options import LaunchOptions

from qgpu_run.bench_engines import bench_engines
from qgpu_run.errors import RequestError
from qgpu_run.kernel_to_launch import kernel_to_request
from qgpu_run.open_engine import (
    ENGINES,
    MODEL_ENGINES,
    EngineChoice,
    json_option,
    model_option,
    profile_option,
)
from qgpu_run.progress import Progress
from qgpu_run.verify_many import find_kernels

KERNELS = (Path("kernels/elementwise/vector_add.cu"), Path("kernels/reduce/dot.cu"))
NANO_KERNELS = (Path("kernels/elementwise/grid_stride_square.cu"),)
"""The others' CTAs do not fit."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@profile_option()
@model_option()
@click.option(
    "--engine",
    "engines",
    type=click.Choice(ENGINES),
    multiple=True,
    default=MODEL_ENGINES,
    show_default=True,
    help="Engines to compare, the first with the others; repeat it.",
)
@click.option("--decode", type=click.IntRange(2), default=16, show_default=True)
@json_option()
def command(
    paths: tuple[Path, ...],
    profile: str | None,
    model: Path | None,
    engines: tuple[str, ...],
    decode: int,
    as_json: bool,
) -> int:
    """Compare the speed of engines on kernels (files or folders; default: vector_add and dot).

    Every launch runs on every engine in turn, at most --decode tokens of each, and must decode
    what the interpreter does.
    """
    config = EngineChoice(engines[0], profile, model).machine()
    chosen = paths or (NANO_KERNELS if config == NANO else KERNELS)
    for path in chosen:
        if not path.exists():
            raise RequestError(
                f"there is no file {path}: name kernels, or go to the project's root"
            )
    files = find_kernels(chosen)
    requests = [kernel_to_request(file, LaunchOptions(), config) for file in files]
    makers = [
        lambda name=name: EngineChoice(name, profile, model).open(config, Progress())
        for name in engines
    ]
    report = bench_engines(requests, makers, decode)
    click.echo(json.dumps(report.to_dict()) if as_json else "\n".join(report.lines()))
    return 0
