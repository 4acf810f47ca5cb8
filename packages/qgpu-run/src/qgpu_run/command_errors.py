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
    mend_streams()
    try:
        status = invoke(ctx)
    except Exception as error:
        found = message_and_status(error)
        if found is None:
            raise
        message, status = found
        click.echo(message, err=True)
    ctx.exit(status or 0)


def message_and_status(error: Exception) -> tuple[str, int] | None:
    """What a user is told of an error, and the exit status; None if the program is wrong."""
    from qgpu_ptx.diagnostics import QgpuPtxError

    match error:
        case QgpuError():
            return f"error: {error}", error.exit_code
        case QgpuPtxError():
            return error.render(), 2
        case OSError():
            return f"error: {os_error_text(error)}", 2
    return None


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
