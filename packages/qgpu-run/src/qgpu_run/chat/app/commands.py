"""The commands of the chat, each once: help, completion and docs are made of these."""

from __future__ import annotations

from pathlib import Path

from qgpu_run.chat.app.command import Command, Front, When, one_of, paths
from qgpu_run.chat.app.kernel_files import kernel_files, kernels_folder
from qgpu_run.chat.app.session import STAND_IN
from qgpu_run.chat.tools import MODES
from qgpu_run.errors import RequestError
from qgpu_run.panel.app import THEMES

SWITCH = {"on": True, "off": False}


def _help(front: Front, argument: str) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = [f"{command.usage:{width}}  {command.help}" for command in COMMANDS.values()]
    front.say("\n".join(lines))


def _mode(front: Front, argument: str) -> None:
    if argument and argument not in MODES:
        raise RequestError(f"there is no mode '{argument}'; there is {' and '.join(MODES)}")
    if argument:
        front.session.set_mode(argument)
    front.say(f"mode {front.session.mode}")


def _model(front: Front, argument: str) -> None:
    if argument:
        front.session.open(None if argument == STAND_IN else Path(argument).expanduser())
    front.say(front.session.describe_model())


def _clear(front: Front, argument: str) -> None:
    front.session.clear()
    front.clear()


def _save(front: Front, argument: str) -> None:
    path = Path(argument).expanduser()
    front.session.save(path)
    front.say(f"saved in {path}")


def _load(front: Front, argument: str) -> None:
    front.session.load(Path(argument).expanduser())


def _kernels(front: Front, argument: str) -> None:
    groups: dict[str, list[str]] = {}
    for file in kernel_files():
        groups.setdefault(file.parent.name, []).append(file.stem)
    if not groups:
        raise RequestError("there are no ready-made kernels here; /run takes any .cu file")
    lines = [f"{group}: {', '.join(names)}" for group, names in groups.items()]
    lines.append(f"/run NAME launches one; they are in {kernels_folder()}")
    front.say("\n".join(lines))


def _complete_run(argument: str) -> list[str]:
    named = [f"{file.parent.name}/{file.stem}" for file in kernel_files()]
    ready = [name for name in named if name.startswith(argument)]
    return ready + paths(".cu", ".ptx", ".json", ".qasm")(argument)


def _run(front: Front, argument: str) -> None:
    front.session.run_kernel(argument)


def _calc(front: Front, argument: str) -> None:
    front.session.calculate(argument)


def _settings(front: Front, argument: str) -> None:
    name, value, *more = [*argument.split(), "", ""]
    if not name:
        names = {value: text for text, value in SWITCH.items()}
        front.say(
            f"check {names[front.session.checks]}  launches are compared with the interpreter\n"
            f"panel {names[front.panel_shown]}  the GPU is seen at work\n"
            f"theme {front.theme_name}"
        )
        return
    choices = SETTINGS.get(name)
    if choices is None:
        raise RequestError(f"there is no setting '{name}'; there is {', '.join(SETTINGS)}")
    if value not in choices or any(more):
        raise RequestError(f"write /settings {name} {'|'.join(choices)}")
    if name == "check":
        if front.busy:
            raise RequestError("check cannot be changed while the model runs")
        front.session.set_check(SWITCH[value])
    elif name == "panel":
        front.show_panel(SWITCH[value])
    else:
        front.set_theme(value)
    front.say(f"{name} {value}")


SETTINGS = {"check": tuple(SWITCH), "panel": tuple(SWITCH), "theme": tuple(THEMES)}


def _panel(front: Front, argument: str) -> None:
    front.show_panel(not front.panel_shown)


def _quit(front: Front, argument: str) -> None:
    front.quit()


_ALL = (
    Command("help", "", "list the commands", When.ALWAYS, _help),
    Command(
        "mode", "[normal|advanced]", "the model writes expressions, or kernels of its own",
        When.IDLE, _mode, one_of(*MODES),
    ),
    Command(
        "model", f"[FOLDER|{STAND_IN}]", "show the model, or load another",
        When.JOB, _model, paths(folders=True),
    ),
    Command("clear", "", "begin a new conversation", When.IDLE, _clear),
    Command("save", "FILE", "write the conversation to a file", When.IDLE, _save, paths()),
    Command("load", "FILE", "go on with a saved conversation", When.IDLE, _load, paths()),
    Command("kernels", "", "list the ready-made kernels", When.ALWAYS, _kernels),
    Command(
        "run", "FILE [--grid N] [--block N] [--arg NAME=VALUE]",
        "launch a kernel, as `qgpu-run launch` does", When.JOB, _run, _complete_run,
    ),
    Command("calc", "EXPRESSION", "calculate on the GPU, without the model's words",
            When.JOB, _calc),
    Command(
        "settings", "[NAME VALUE]", "show or set check on|off, panel on|off, theme",
        When.ALWAYS, _settings,
        one_of(*(f"{name} {value}" for name, values in SETTINGS.items() for value in values)),
    ),
    Command("panel", "", "show or hide the GPU", When.ALWAYS, _panel),
    Command("quit", "", "leave", When.ALWAYS, _quit),
)  # fmt: skip

COMMANDS = {command.name: command for command in _ALL}


def commands_table() -> str:
    """The commands as a table in Markdown."""
    lines = ["| command | does |", "|---|---|"]
    for command in COMMANDS.values():
        usage = command.usage.replace("|", "\\|")
        lines.append(f"| `{usage}` | {command.help.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"
