"""`qgpu-run watch`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from qgpu_ptx.launch_options import LaunchOptions

from qgpu_run.commands.launch_command import file_to_request
from qgpu_run.errors import RequestError
from qgpu_run.open_engine import (
    EngineChoice,
    device_option,
    engine_option,
    json_option,
    max_tokens_option,
    model_option,
    profile_option,
)
from qgpu_run.progress import Progress

if TYPE_CHECKING:
    from qgpu_run.panel.events import PanelFeed
    from qgpu_run.panel.live_launch import LiveLaunch
    from qgpu_run.panel.recording import Recording
    from qgpu_run.panel.recording_file import RecordingWriter

QUIT_SECONDS = 2.0
"""Time that a launch has to stop in when the panel is closed."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--spec", type=click.Path(path_type=Path), help="Launch spec; default: FILE's .toml.")
@click.option("--kernel", help="Entry to run, where FILE has several.")
@click.option("--grid", help="CTAs, as in 4 or 2,2.")
@click.option("--block", help="Threads of a CTA, as in 16 or 4,4.")
@click.option("--arg", "arguments", multiple=True, help="NAME[:TYPE]=VALUE, as for launch.")
@profile_option()
@model_option()
@engine_option()
@device_option()
@click.option("--check", is_flag=True, help="Compare every token with the interpreter's.")
@max_tokens_option()
@click.option("--paused", is_flag=True, help="Wait before the first token.")
@click.option("--theme", type=click.Choice(["dark", "light", "terminal"]), help="Colours.")
@click.option(
    "--record", type=click.Path(path_type=Path), help="Save all that happens (JSON lines)."
)
@click.option("--replay", type=click.Path(path_type=Path), help="Show what --record saved.")
@click.option("--at", type=click.IntRange(0), help="Stop at this token.")
@click.option("--headless", is_flag=True, help="No panel: print the outcome, or with --json all.")
@click.option("--screenshot", type=click.Path(path_type=Path), help="Save a picture (SVG) instead.")
@click.option("--size", default="160x48", show_default=True, help="Of the picture.")
@json_option()
def command(
    file: Path | None,
    spec: Path | None,
    kernel: str | None,
    grid: str | None,
    block: str | None,
    arguments: tuple[str, ...],
    profile: str | None,
    model: Path | None,
    engine: str,
    device: str,
    check: bool,
    max_tokens: int,
    paused: bool,
    theme: str | None,
    record: Path | None,
    replay: Path | None,
    at: int | None,
    headless: bool,
    screenshot: Path | None,
    size: str,
    as_json: bool,
) -> int:
    """Launch FILE as `qgpu-run launch` does, and show the machine while the model runs it.

    Everything shown is what the model's tokens say, or was read from its recurrent state. CTAs
    run one after the other.

    Exits as launch does; with 0 if it is quit before the end.
    """
    from qgpu_run.panel.headless import parse_size

    columns_rows = parse_size(size)
    if (file is None) == (replay is None):
        raise RequestError("give a FILE to launch, or --replay FILE")
    if not headless and screenshot is None:
        if as_json:
            raise RequestError("--json goes with --headless")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise RequestError("the panel needs a terminal; --headless --json prints what it shows")
    if replay is not None:
        from qgpu_run.panel.recording_file import read_recording

        shown = read_recording(replay)
        if headless:
            shown.seek(shown.head if at is None else at)
            return _print(shown, as_json)
        return _show(None, None, shown, None, at, paused, theme, screenshot, columns_rows)
    assert file is not None
    choice = EngineChoice(engine, profile, model, device)
    options = LaunchOptions(spec, kernel, grid, block, arguments)
    request = file_to_request(file, options, choice)

    from qgpu_run.panel.events import PanelFeed
    from qgpu_run.panel.live_launch import LiveLaunch
    from qgpu_run.panel.recording_file import RecordingWriter

    writer = None if record is None else RecordingWriter(record)
    try:
        feed = PanelFeed()
        # The panel draws on the terminal: nobody else may then.
        opened = choice.open(request.launch.config, Progress(shown=False))
        launch = LiveLaunch(request, opened, feed, check=check, max_tokens=max_tokens)
        if headless:
            from qgpu_run.panel.headless import record as run_headless

            shown = run_headless(launch, feed, at=at, writer=writer)
            if launch.error is not None:
                raise launch.error
            return _print(shown, as_json)
        return _show(feed, launch, None, writer, at, paused, theme, screenshot, columns_rows)
    finally:
        if writer is not None:
            writer.close()


def _print(recording: Recording, as_json: bool) -> int:
    from qgpu_run.panel.state_to_dict import recording_to_dict

    outcome = recording.outcome
    if as_json:
        click.echo(json.dumps(recording_to_dict(recording)))
    else:
        for name, values in outcome.get("outputs", {}).items():
            click.echo(f"{name} = {values}")
        info = recording.info
        click.echo(
            f"{info.kernel} on machine '{info.config.name}', {info.engine}: "
            f"{recording.head} tokens, {recording.view.setup} setup tokens"
        )
        for problem in outcome.get("problems", [recording.problem]):
            click.echo(problem)
    return 1 if outcome.get("problems") else 0


def _show(
    feed: PanelFeed | None,
    launch: LiveLaunch | None,
    recording: Recording | None,
    writer: RecordingWriter | None,
    at: int | None,
    paused: bool,
    theme: str | None,
    screenshot: Path | None,
    size: tuple[int, int],
) -> int:
    from qgpu_run.panel.app import PanelApp
    from qgpu_run.panel.terminal_input import mend_terminal_input

    app = PanelApp(
        feed=feed,
        launch=launch,
        recording=recording,
        at=at,
        playing=not paused and at is None,
        writer=writer,
        theme_name=theme,
    )
    if screenshot is not None:
        from qgpu_run.panel.headless import save_screenshot

        save_screenshot(app, screenshot, size, at)
    else:
        mend_terminal_input()
        app.run()
    if launch is None:
        return app.return_code or 0
    launch.join(QUIT_SECONDS)
    if launch.error is not None:
        raise launch.error
    outcome = launch.outcome
    if outcome is None:
        shown = app.panel.recording
        click.echo(f"stopped at token {0 if shown is None else shown.head}")
        return app.return_code or 0
    click.echo(outcome.to_text())
    return outcome.status
