"""The `qgpu-merge` command. Subcommands live in qgpu_merge/commands, one file each.

They are imported only when called, so that `--help` is quick. What the user gave wrong is one
message on standard error and status 2.
"""

from __future__ import annotations

from typing import Any

import click
from qgpu_isa.command_group import LazyGroup
from qgpu_isa.errors import QgpuError, os_error_text
from qgpu_isa.termination import clean_termination

# Name and one-line help of each subcommand; its module is qgpu_merge.commands.<name>_command.
SUBCOMMANDS = {
    "build": "Write a merged checkpoint and print its path.",
    "check": "Measure that a merged model treats text as its original does.",
    "extract": "Write the base model of a merged checkpoint.",
    "inspect": "Show what a checkpoint folder holds.",
    "name-tokens": "Write a merged checkpoint whose tokenizer names all GPU tokens.",
    "synthesize": "Write a random Qwen3.5 checkpoint.",
}


class _Commands(LazyGroup):
    """Turns errors into messages and statuses."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with clean_termination():
                return super().invoke(ctx)
        except QgpuError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_code)
        except OSError as error:
            click.echo(f"error: {os_error_text(error)}", err=True)
            ctx.exit(2)


@click.group(
    cls=_Commands,
    package="qgpu_merge.commands",
    subcommands=SUBCOMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="qgpu-merge")
def main() -> None:
    """Merge a qgpu circuit with a Qwen3.5 checkpoint."""


if __name__ == "__main__":
    main()
