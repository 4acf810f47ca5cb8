"""`qgpu-run verify`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from qgpu_run.open_engine import (
    MODEL_ENGINES,
    EngineChoice,
    device_option,
    engine_option,
    max_tokens_option,
    model_option,
    profile_option,
)
from qgpu_run.progress import Progress
from qgpu_run.verify_many import find_kernels, verify_kernels, write_results


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@profile_option()
@model_option()
@engine_option(MODEL_ENGINES)
@device_option()
@max_tokens_option()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="JSON file to keep up to date."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list at the end.")
def command(
    paths: tuple[Path, ...],
    profile: str | None,
    model: Path | None,
    engine: str,
    device: str,
    max_tokens: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """Verify many kernels (files or folders) on one model by teacher forcing.

    Exits with 0 if every kernel that fits the machine is exact and its outputs are as expected,
    and with 1 if one is not or none fits.
    """
    choice = EngineChoice(engine, profile, model, device)
    config = choice.machine()
    made = choice.open(config, Progress())
    results = []
    for result in verify_kernels(find_kernels(paths), config, made, max_tokens):
        results.append(result)
        if output is not None:
            write_results(output, results)
        if not as_json:
            click.echo(
                f"{result.kernel:32} {result.tokens:6} tokens {result.setup_tokens:6} setup "
                f"{result.seconds:7.1f} s  {result.state}"
            )
    if as_json:
        click.echo(json.dumps([asdict(r) for r in results]))
    ran = [r for r in results if r.ran]
    return int(not ran or not all(r.exact and r.expected_ok for r in ran))
