"""The `qgpu-run` command. Subcommands live in qgpu_run/commands, one file each.

They are imported only when called, so that `--help` is quick. A subcommand returns its exit status:
1 for a fault or a result that is not as it should be; what the user gave wrong is one message on
standard error and status 2.
"""

from __future__ import annotations

from typing import Any

import click
from qgpu_isa.command_group import LazyGroup

from qgpu_run.command_errors import invoke_with_messages

# Name and one-line help of each subcommand; its module is qgpu_run.commands.<name>_command.
SUBCOMMANDS = {
    "launch": "Launch a kernel, a program image or a listing.",
    "calc": "Evaluate an expression, one launch an operation.",
    "watch": "Launch, and look inside while it runs.",
    "chat": "Talk with a model; it calls its GPU.",
    "ask": "Ask a model one question; it calls its GPU.",
    "eval": "Ask generated questions with known answers.",
    "verify": "Verify many kernels by teacher forcing.",
    "fuzz": "Verify random programs by teacher forcing.",
    "tokens": "Count the tokens of kernels without a model.",
    "bench": "Measure speeds, sizes and token counts, one table.",
    "engines": "Compare the speed of engines on kernels of yours.",
    "text-speed": "What the GPU's layers cost on text.",
    "scale": "Measure throughput by the number of CTAs.",
}


class _Commands(LazyGroup):
    """Turns errors into messages and results into statuses."""

    def invoke(self, ctx: click.Context) -> Any:
        invoke_with_messages(ctx, super().invoke)


@click.group(
    cls=_Commands,
    package="qgpu_run.commands",
    subcommands=SUBCOMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="qgpu-run")
def main() -> None:
    """Launch CUDA kernels on a language model."""


if __name__ == "__main__":
    main()
