"""`qgpu-run fuzz`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from qgpu_isa.files import write_text

from qgpu_run.fuzz import fuzz
from qgpu_run.open_engine import (
    MODEL_ENGINES,
    EngineChoice,
    device_option,
    engine_option,
    json_option,
    model_option,
    profile_option,
)
from qgpu_run.progress import Progress


@click.command()
@profile_option()
@model_option()
@engine_option(MODEL_ENGINES)
@device_option()
@click.option("--programs", type=click.IntRange(1), default=100, show_default=True)
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="Number.")
@click.option("--batch", type=click.IntRange(1), default=16, show_default=True)
@click.option("--max-tokens", type=click.IntRange(2), default=60, show_default=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="JSON file to keep up to date."
)
@json_option()
def command(
    profile: str | None,
    model: Path | None,
    engine: str,
    device: str,
    programs: int,
    first: int,
    batch: int,
    max_tokens: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """Verify random programs by teacher forcing; program N is the same everywhere.

    --batch programs go through the model as the rows of one forward pass. Exits with 0 if every
    program is exact, else with 1.
    """
    choice = EngineChoice(engine, profile, model, device)
    made = choice.open(choice.machine(), Progress())
    shown: set[int] = set()
    for report in fuzz(made, first, programs, batch=batch, max_tokens=max_tokens):
        if output is not None:
            write_text(output, json.dumps(report.to_dict(), indent=1) + "\n")
        for number in report.failures.keys() - shown:
            click.echo(f"program {number}: {report.failures[number]}", err=True)
        shown |= report.failures.keys()
        click.echo(
            f"{report.exact} of {report.programs} programs exact, {report.tokens} tokens, "
            f"margin {report.min_margin:.1f}, {report.seconds:.0f} s",
            err=True,
        )
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    return int(report.exact != report.programs)
