"""Records docs/images/demo.gif: types the commands of a list into a shell, and draws the terminal.

    uv run --group demo python docs/scripts/record_demo.py
    uv run --group demo python docs/scripts/record_demo.py --steps MINE.toml -o a.gif -o a.mp4

The list is a TOML file; `demo.toml` beside this script says what it may hold.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from demo_pictures import write_film, write_gif
from demo_terminal import KEYS, DemoError, Frame, Terminal
from qgpu_isa.cache import cache_root
from run_command import environment

ROOT = Path(__file__).resolve().parents[2]
STEPS = Path(__file__).with_name("demo.toml")
PICTURE = ROOT / "docs" / "images" / "demo.gif"

SHELL = ("bash", "--noprofile", "--norc", "--noediting")
PROMPT = "$ "
KINDS = {
    "type": str,
    "keys": list,
    "wait": str,
    "pause": (int, float),
    "size": list,
    "timeout": (int, float),
}
SETTINGS = {
    "size": list,
    "typing": (int, float),
    "frames_a_second": (int, float),
    "longest": (int, float),
    "timeout": (int, float),
    "step": list,
}


def read_steps(path: Path) -> dict[str, Any]:
    """The settings and steps in a file.

    Raises:
        DemoError: it holds something that no recording can do.
    """
    try:
        found = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise DemoError(f"{path}: {error}") from None
    _check(str(path), found, SETTINGS)
    if not found.get("step"):
        raise DemoError(f"{path}: no [[step]]")
    for number, step in enumerate(found["step"], 1):
        place = f"{path}: step {number}"
        _check(place, step, KINDS)
        wrong = [key for key in step.get("keys", []) if key not in KEYS and len(key) != 1]
        if wrong:
            raise DemoError(f"{place}: no key {wrong[0]!r}; there are {', '.join(KEYS)}")
    return found


def _check(place: str, found: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name, value in found.items():
        if name not in known:
            raise DemoError(f"{place}: no setting {name!r}; there are {', '.join(known)}")
        if not isinstance(value, known[name]):
            raise DemoError(f"{place}: {name} cannot be {value!r}")


def record(steps: Mapping[str, Any], folder: Path, cache: Path) -> list[Frame]:
    """Does all steps in a terminal, and gives the frames.

    Raises:
        DemoError: what a step waits for does not come up.
    """
    columns, rows = steps.get("size", [110, 34])
    with tempfile.TemporaryDirectory() as place:
        variables = environment(Path(place), cache) | {"PS1": PROMPT, "HISTFILE": "/dev/null"}
        with Terminal(
            SHELL,
            size=(columns, rows),
            folder=folder,
            variables=variables,
            frames_a_second=steps.get("frames_a_second", 8),
            longest=steps.get("longest", 1.0),
        ) as terminal:
            terminal.wait(r"^\$ ?$", 20)
            for step in steps["step"]:
                _do(terminal, step, steps)
            return terminal.frames


def _do(terminal: Terminal, step: Mapping[str, Any], steps: Mapping[str, Any]) -> None:
    if "size" in step:
        terminal.resize((step["size"][0], step["size"][1]))
    terminal.type(step.get("type", ""), steps.get("typing", 0.04))
    for key in step.get("keys", ["enter"] if "type" in step else []):
        terminal.press(key)
    if "wait" in step:
        terminal.wait(step["wait"], step.get("timeout", steps.get("timeout", 120)))
    terminal.pause(step.get("pause", 0.3))


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--steps", type=click.Path(path_type=Path), default=STEPS, help="List of steps.")
@click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(path_type=Path),
    multiple=True,
    default=[PICTURE],
    help="GIF or MP4 to write; repeat it for both.",
)
def main(steps: Path, outputs: tuple[Path, ...]) -> None:
    """Record a demo of the commands in a terminal."""
    try:
        frames = record(read_steps(steps), ROOT, cache_root())
        for output in outputs:
            (write_film if output.suffix == ".mp4" else write_gif)(frames, output)
    except (DemoError, OSError) as error:
        raise click.ClickException(str(error)) from None
    for output in outputs:
        seconds = sum(frame.seconds for frame in frames)
        size = output.stat().st_size / 1e6
        click.echo(f"{output}: {len(frames)} frames, {seconds:.0f} s, {size:.2f} MB")


if __name__ == "__main__":
    main()
