"""`qgpu-merge extract`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qgpu_merge.commands.common import FOLDER, bar

if TYPE_CHECKING:
    from qgpu_merge.write_checkpoint import Progress


@click.command()
@click.argument("merged", type=FOLDER)
@click.option(
    "-o", "--output", type=FOLDER, required=True, help="Folder to write, with its parents."
)
@click.option("--force", is_flag=True, help="Replace an existing checkpoint.")
def command(merged: Path, output: Path, force: bool) -> None:
    """Write the base model of a merged checkpoint, every tensor as it was.

    All files of the merged checkpoint are compared with their hashes before.
    """
    from qgpu_merge.extract_base import extract_base

    with ExitStack() as stack:

        def start(what: str, size: int) -> Progress:
            stack.close()
            return bar(stack, size, what)

        extract_base(merged, output, force=force, start=start)
    click.echo(output)
