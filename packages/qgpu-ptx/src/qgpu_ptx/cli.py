"""The `qgpu-ptx` command. Subcommands live in qgpu_ptx/commands, one file each.

They are imported only when called, so that `--help` is quick. Every user error is one message on
standard error and exit status 2; a result that differs from what was expected is status 1.
"""

from __future__ import annotations

from typing import Any

import click
from qgpu_isa.command_group import LazyGroup
from qgpu_isa.errors import os_error_text

from qgpu_ptx.diagnostics import QgpuPtxError

# Name and one-line help of each subcommand; its module is qgpu_ptx.commands.<name>_command.
SUBCOMMANDS = {
    "compile": "Compile a CUDA file to PTX.",
    "parse": "Check a PTX file and print it, or its syntax tree.",
    "lower": "Lower a kernel to machine blocks.",
    "run": "Run a kernel on the PTX interpreter.",
    "supported": "List the PTX instructions that can be run.",
}


class _Commands(LazyGroup):
    """Turns errors into messages and statuses."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except QgpuPtxError as error:
            click.echo(error.render(), err=True)
            ctx.exit(2)
        except OSError as error:
            click.echo(f"error: {os_error_text(error)}", err=True)
            ctx.exit(2)


@click.version_option(package_name="qgpu-ptx")
@click.group(
    cls=_Commands,
    package="qgpu_ptx.commands",
    subcommands=SUBCOMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def main() -> None:
    """CUDA C and PTX for the qgpu machine: compile, check and run kernels."""
