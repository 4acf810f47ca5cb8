"""`qgpu-merge name-tokens`."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qgpu_merge.commands.common import FOLDER, bar, say

if TYPE_CHECKING:
    from qgpu_merge.write_checkpoint import Progress


@click.command()
@click.argument("merged", type=FOLDER)
@click.option(
    "-o", "--output", type=FOLDER, required=True, help="Folder to write, with its parents."
)
@click.option("--force", is_flag=True, help="Replace an existing checkpoint.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(merged: Path, output: Path, force: bool, as_json: bool) -> None:
    """Write a merged checkpoint whose tokenizer names all GPU tokens, for servers of text.

    The weights are not copied where the file system can give a file a second name. Text is cut
    into tokens as before; loading the tokenizer takes some seconds more.
    """
    from qgpu_merge.name_tokens import name_tokens

    with ExitStack() as stack:

        def start(size: int) -> Progress:
            return bar(stack, size, "checking")

        named = name_tokens(merged, output, force=force, start=start)
    if as_json:
        click.echo(json.dumps(named.to_dict()))
        return
    what = "" if named.text else "; its tokenizer knows no text, the base's had none"
    say(f"{named.tokens} tokens of machine '{named.machine}' have names{what}")
    click.echo(named.path)
