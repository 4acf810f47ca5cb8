"""`qgpu-merge inspect`."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qgpu_merge.commands.common import FOLDER, bar

if TYPE_CHECKING:
    from qgpu_merge.write_checkpoint import Progress


@click.command()
@click.argument("path", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--verify", is_flag=True, help="Read all files and compare their hashes.")
def command(path: Path, as_json: bool, verify: bool) -> None:
    """Show what a checkpoint folder holds.

    With --verify, a merged checkpoint is read in full: the first damaged, missing or swapped file
    is named. A launch does the same when files changed since the last one.
    """
    from qgpu_merge.inspect_checkpoint import describe, inspect_checkpoint

    verified = _verify(path) if verify else None
    facts = inspect_checkpoint(path)
    if verified is not None:
        facts["verified"] = verified
    click.echo(json.dumps(facts, indent=2) if as_json else describe(facts))


def _verify(path: Path) -> dict[str, int]:
    """Hashes all files of a folder, with progress; how many there are, and their bytes."""
    from qgpu_isa.verify_files import verify_files

    with ExitStack() as stack:

        def start(size: int) -> Progress:
            return bar(stack, size, "checking")

        listed = verify_files(path, start)
    return {"files": len(listed), "bytes": sum(entry.size for entry in listed.values())}
