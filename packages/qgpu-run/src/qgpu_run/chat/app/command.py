"""What a command of the chat is, and how a line is read as one and completed."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Protocol

from qgpu_run.chat.app.session import ChatSession
from qgpu_run.errors import RequestError

MOST_COMPLETIONS = 200


class Front(Protocol):
    """Who shows the chat; commands call it."""

    session: ChatSession
    theme_name: str

    @property
    def busy(self) -> bool:
        """Whether a job runs."""

    @property
    def panel_shown(self) -> bool:
        """Whether the panel is seen."""

    def submit(self, job: Callable[[], None]) -> None:
        """Runs a job where it may take long."""

    def say(self, text: str) -> None:
        """Shows text."""

    def clear(self) -> None:
        """Takes away what is shown."""

    def show_panel(self, shown: bool) -> None:
        """Shows the panel or hides it; an error where there is none."""

    def set_theme(self, name: str) -> None:
        """Chooses colours; an error where there are none."""

    def quit(self) -> None:
        """Ends the chat."""


class When(enum.Enum):
    """When a command may be given, and where it runs."""

    ALWAYS = enum.auto()
    """At once, even while the model writes."""
    IDLE = enum.auto()
    """At once, while nothing else runs."""
    JOB = enum.auto()
    """As a job, while nothing else runs; behind the loading of the model."""


def no_completion(argument: str) -> Iterable[str]:
    """For arguments that nobody can guess."""
    return ()


@dataclass(frozen=True)
class Command:
    """A command of the chat.

    Attributes:
        name: without the slash.
        arguments: as the help shows them: empty for none, in brackets if they may be left out.
        help: one line.
        when: when it may be given.
        run: does it.
        complete: whole arguments that begin as one does.
    """

    name: str
    arguments: str
    help: str
    when: When
    run: Callable[[Front, str], None]
    complete: Callable[[str], Iterable[str]] = no_completion

    @property
    def usage(self) -> str:
        """As it is written."""
        return f"/{self.name} {self.arguments}".rstrip()


@dataclass(frozen=True)
class Completion:
    """A way to go on with a line.

    Attributes:
        text: the whole line.
        help: what it is, may be empty.
    """

    text: str
    help: str = ""


def is_command(text: str) -> bool:
    """Whether what the user wrote is a command rather than a message."""
    return text.startswith("/")


def parse_command(text: str, commands: Mapping[str, Command]) -> tuple[Command, str]:
    """The command and its argument.

    Raises:
        RequestError: there is no such command, or it is written otherwise.
    """
    name, _, argument = text[1:].replace("\n", " ").partition(" ")
    argument = argument.strip()
    command = commands.get(name)
    if command is None:
        close = get_close_matches(name, commands, n=1)
        hint = f"did you mean /{close[0]}?" if close else "/help lists all"
        raise RequestError(f"there is no command /{name}; {hint}")
    if argument and not command.arguments:
        raise RequestError(f"/{name} takes nothing behind it")
    if not argument and command.arguments and not command.arguments.startswith("["):
        raise RequestError(f"write {command.usage}")
    return command, argument


def run_command(front: Front, text: str, commands: Mapping[str, Command]) -> None:
    """Does what a line says.

    Raises:
        RequestError: it cannot be done, or not now.
        QgpuError, OSError: what came of it.
    """
    command, argument = parse_command(text, commands)
    if command.when is not When.ALWAYS and front.busy:
        if not front.session.opening:
            raise RequestError(f"/{command.name} has to wait: Escape ends what runs")
        if command.when is When.IDLE:
            raise RequestError("the model is still loading")
    job = partial(command.run, front, argument)
    if command.when is When.JOB:
        front.submit(job)
    else:
        job()


def complete(line: str, commands: Mapping[str, Command]) -> list[Completion]:
    """Ways to go on with a line; none if it is no command."""
    if not is_command(line) or "\n" in line:
        return []
    name, space, argument = line[1:].partition(" ")
    if not space:
        found = [command for command in commands.values() if command.name.startswith(name)]
        return [Completion(f"/{c.name} " if c.arguments else f"/{c.name}", c.help) for c in found]
    if name not in commands:
        return []
    options = [o for o in commands[name].complete(argument.lstrip()) if o != argument]
    return [Completion(f"/{name} {option}") for option in options[:MOST_COMPLETIONS]]


def one_of(*choices: str) -> Callable[[str], list[str]]:
    """Completes to one of some texts."""
    return lambda argument: [choice for choice in choices if choice.startswith(argument)]


def paths(*suffixes: str, folders: bool = False) -> Callable[[str], list[str]]:
    """Completes to paths.

    Args:
        suffixes: of files; all if there are none.
        folders: only those.
    """

    def complete_path(argument: str) -> list[str]:
        head, slash, start = argument.rpartition("/")
        found = []
        # Folders that cannot be read, the homes of users that are none, and what is no path.
        with suppress(OSError, RuntimeError, ValueError):
            folder = Path(head + slash).expanduser() if slash else Path()
            for path in sorted(folder.iterdir()):
                hidden = path.name.startswith(".") and not start.startswith(".")
                if hidden or not path.name.startswith(start):
                    continue
                if path.is_dir():
                    found.append(f"{head}{slash}{path.name}/")
                elif not folders and (not suffixes or path.suffix in suffixes):
                    found.append(f"{head}{slash}{path.name}")
        return found

    return complete_path
