"""`qgpu-merge check`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from qgpu_merge.commands.common import FOLDER, bar, say


@click.command()
@click.argument("original")
@click.argument("merged", type=FOLDER)
@click.option(
    "--text", "texts", type=FOLDER, multiple=True, help="Text file instead of the default text."
)
@click.option("--tokens", type=click.IntRange(4), default=20_000, show_default=True)
@click.option(
    "--sequence", type=click.IntRange(2), default=512, show_default=True, help="Longest sequence."
)
@click.option(
    "--layer-tokens",
    type=click.IntRange(1),
    default=512,
    show_default=True,
    help="Text tokens to take through the GPU layers.",
)
@click.option(
    "--continuations",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="Greedy continuations to compare; 0 never loads the original whole.",
)
@click.option("--continuation-tokens", type=click.IntRange(1), default=256, show_default=True)
@click.option("--all-layers", is_flag=True, help="Run the GPU layers in every measurement.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or mps.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(original: str, merged: Path, as_json: bool, **options: Any) -> None:
    """Measure that MERGED treats text as ORIGINAL does.

    ORIGINAL is a folder or a name on the hub, as the --base of a build. MERGED's files are compared
    with their hashes. Limits hold for 20,000 tokens; with a few hundred, chance may miss one.

    Exit status: 0 if all limits are met, 1 if one is missed, 2 for wrong input.
    """
    # Read when torch is imported: its threads sleep while they wait, so busy cores do not stall it.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from qgpu_merge.check.open_pair import open_pair
    from qgpu_merge.resolve_base import resolve_base

    pair = open_pair(resolve_base(original, say), merged)
    _compare_hashes(merged)
    from qgpu_merge.check.limits import failures
    from qgpu_merge.check.measure import Options, measure
    from qgpu_merge.check.progress import StageBars
    from qgpu_merge.check.report import describe
    from qgpu_merge.check.result import as_json as result_as_json

    with StageBars() as bars:
        result = measure(pair, Options(**options), bars.stage)
    missed = failures(result)
    click.echo(
        json.dumps(result_as_json(result, missed), indent=2, ensure_ascii=False)
        if as_json
        else describe(result, missed)
    )
    sys.exit(1 if missed else 0)


def _compare_hashes(merged: Path) -> None:
    from contextlib import ExitStack

    from qgpu_isa.file_hashes import FILES_MANIFEST
    from qgpu_isa.verify_files import verify_once

    if not (merged / FILES_MANIFEST).exists():
        say(f"notice: {merged} has no {FILES_MANIFEST}: its files are not compared with hashes")
        return
    with ExitStack() as stack:
        verify_once(merged, lambda size: bar(stack, size, "comparing hashes"))
