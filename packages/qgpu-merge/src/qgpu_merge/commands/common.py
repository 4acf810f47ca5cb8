"""What the subcommands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

FOLDER = click.Path(path_type=Path)


def say(text: str) -> None:
    """Prints a line on standard error: standard output is for results."""
    click.echo(text, err=True)


def bar(stack: ExitStack, size: int, label: str) -> Callable[[int], None]:
    """A progress bar on standard error until the stack ends; returns what moves it."""
    shown = click.progressbar(length=size, label=label, file=sys.stderr)
    return stack.enter_context(shown).update
