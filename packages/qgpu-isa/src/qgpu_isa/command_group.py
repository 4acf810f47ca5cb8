"""A command whose subcommands live in one module each and are imported only when called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """Lists its subcommands without importing them, so that `--help` is quick.

    Args:
        package: where the modules are: `<package>.<name>_command`, each with a `command`.
        subcommands: name and one-line help of each.
    """

    def __init__(self, *args: Any, package: str, subcommands: Mapping[str, str], **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._package, self._subcommands = package, subcommands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._subcommands:
            return None
        module = importlib.import_module(f"{self._package}.{cmd_name.replace('-', '_')}_command")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._subcommands.items()))
