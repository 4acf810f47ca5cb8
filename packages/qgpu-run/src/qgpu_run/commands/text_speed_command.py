"""`qgpu-run text-speed`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qgpu_run.open_engine import device_option, json_option, model_option, profile_option


@click.command()
@profile_option()
@model_option()
@click.option(
    "--original", type=click.Path(path_type=Path), help="The model it was merged with, beside it."
)
@device_option()
@click.option("--prompt", type=click.IntRange(1), default=64, show_default=True)
@click.option("--decode", type=click.IntRange(1), default=8, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@json_option()
def command(
    profile: str | None,
    model: Path | None,
    original: Path | None,
    device: str,
    prompt: int,
    decode: int,
    rounds: int,
    as_json: bool,
) -> int:
    """What the GPU's layers cost on text, and what skipping them saves.

    Random text tokens are read by the merged model as it is and with its GPU layers skipped, in
    turn, and the logits compared bit for bit. Exits with 1 if they differ.
    """
    from qgpu_run.load_model import ensure_model, load_model
    from qgpu_run.text_speed import measure_text_speed

    path = model or ensure_model(profile or "default")
    click.echo(f"loading {path}", err=True)
    loaded = load_model(path, device=device)
    found = measure_text_speed(loaded, original, prompt=prompt, decode=decode, rounds=rounds)
    click.echo(json.dumps(found.to_dict()) if as_json else "\n".join(found.lines()))
    return 0 if found.identical else 1
