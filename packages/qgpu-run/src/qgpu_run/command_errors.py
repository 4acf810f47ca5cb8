"""Errors of a command as messages, and its result as exit status."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click
from qgpu_isa.errors import QgpuError, os_error_text


def invoke_with_messages(ctx: click.Context, invoke: Callable[[click.Context], Any]) -> NoReturn:
    """Calls a command, and exits with what it returns or with the status of its error."""
    from qgpu_ptx.diagnostics import QgpuPtxError

    mend_streams()
    try:
        status = invoke(ctx)
    except QgpuError as error:
        click.echo(f"error: {error}", err=True)
        status = error.exit_code
    except QgpuPtxError as error:
        click.echo(error.render(), err=True)
        status = 2
    except OSError as error:
        click.echo(f"error: {os_error_text(error)}", err=True)
        status = 2
    ctx.exit(status or 0)


def mend_streams() -> None:
    """Has standard streams that were closed be empty, and take what their encoding does not hold.

    Descriptors are opened in their order, so each gets its own number again.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif name != "stderr" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


class MessageCommand(click.Command):
    """A command that is also a program of its own."""

    def invoke(self, ctx: click.Context) -> Any:
        """Turns errors into messages and results into statuses."""
        invoke_with_messages(ctx, super().invoke)
