"""The options that say which kernel a command takes and how it is launched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def launch_options(command: F) -> F:
    """SOURCE and all options that `LaunchOptions` and `read_module` take."""
    path = click.Path(path_type=Path)
    for decorate in (
        click.argument("source", type=path),
        click.option(
            "--spec", type=path, help="Launch spec; default: SOURCE's .toml, if there is one."
        ),
        click.option("--kernel", help="Entry to take, where SOURCE has several."),
        click.option("--grid", help="CTAs, as in 4 or 2,2."),
        click.option("--block", help="Threads of a CTA, as in 16 or 4,4."),
        click.option("--arg", "arguments", multiple=True, help="NAME[:TYPE]=VALUE, see above."),
        click.option("--compiler", help="CUDA compiler for a .cu file."),
    )[::-1]:
        command = decorate(command)
    return command
