"""`qgpu-run chat`, and `qgpu`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from qgpu_run.command_errors import MessageCommand
from qgpu_run.open_engine import device_option, engine_option, model_option, profile_option


@click.command(cls=MessageCommand, context_settings={"help_option_names": ["-h", "--help"]})
@model_option()
@profile_option("the model's, small for the stand-in")
@engine_option(("sparse", "transformers", "interpreter"))
@device_option()
@click.option("--mode", type=click.Choice(["normal", "advanced"]), default="normal")
@click.option("--check/--no-check", default=True, help="Compare launches with the interpreter.")
@click.option("--panel/--no-panel", default=True, help="Show the GPU where there is room.")
@click.option("--theme", type=click.Choice(["dark", "light", "terminal"]), help="Colours.")
@click.option("--plain", is_flag=True, help="Read and write lines, without a screen.")
@click.option("--load", type=click.Path(path_type=Path), help="Go on with a saved conversation.")
def command(
    model: Path | None,
    profile: str | None,
    engine: str,
    device: str,
    mode: str,
    check: bool,
    panel: bool,
    theme: str | None,
    plain: bool,
    load: Path | None,
) -> int:
    """Chat with a merged model that computes on its own GPU; without --model, with the stand-in.

    The model calls its GPU where it wants to. /help lists what else there is. What is no terminal
    is read and written line by line, as with --plain.
    """
    from qgpu_run.chat.app.session import ChatOptions

    options = ChatOptions(model, profile, engine, device, mode, check, load)
    dumb = os.environ.get("TERM", "dumb") == "dumb"
    if plain or dumb or not (sys.stdin.isatty() and sys.stdout.isatty()):
        from qgpu_run.chat.app.plain import PlainChat

        return PlainChat(options, edits=not dumb).run()
    from qgpu_run.chat.app.chat_app import ChatApp
    from qgpu_run.panel.terminal_input import mend_terminal_input

    mend_terminal_input()
    app = ChatApp(options, panel=panel, theme_name=theme)
    app.run()
    return app.return_code or 0
