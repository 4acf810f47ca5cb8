"""The commands that the Markdown files of the repository show: found, classified, parsed, run.

A fence of `sh` or `bash` is commands; one of `console` is commands behind `$ ` with what they
print, where `...` stands for anything. Every command is run by the tests unless a rule in `RULES`
or a comment above its fence says otherwise:

    <!-- commands: slow -->             only with the long tests
    <!-- commands: parsed, WHY -->      not at all; its options must exist
    <!-- commands: status 1 -->         it exits with 1, and may print to standard error
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import click
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]

SHELL = ("sh", "bash")
CONSOLE = "console"
COMMANDS = re.compile(r"^(\$ |uv |qgpu(-[a-z]+)? )", re.MULTILINE)
PROGRAMS = (
    "bash",
    "cat",
    "echo",
    "head",
    "mkdocs",
    "pip",
    "pytest",
    "python",
    "tail",
    "torchrun",
    "transformers",
)
"""What commands may call beside the commands of the packages."""


class How(Enum):
    """When the tests run a command."""

    QUICK = "quick"
    SLOW = "slow"
    PARSED = "parsed"


@dataclass(frozen=True)
class Rule:
    """Commands in which `pattern` is found, and `unless` is not, are run so, because of `why`."""

    how: How
    pattern: str
    why: str
    unless: str = r"(?!)"

    def fits(self, command: str) -> bool:
        """Whether the rule is about a command."""
        return bool(re.search(self.pattern, command)) and not re.search(self.unless, command)


NO_MODEL = r"--engine interpreter|--profile nano|--model /tmp/nano|--replay|--help|--list"
RULES = (
    Rule(How.PARSED, r"\bQwen/", "needs published weights"),
    Rule(
        How.PARSED, r"\bmerged\b|\b(ORIGINAL|MERGED|CHECKPOINT|MODEL|LLAMA_CPP)\b", "needs a model"
    ),
    Rule(How.PARSED, r"^uv run pytest|mkdocs build", "other tests run it"),
    Rule(How.PARSED, r"^pip |^python docs/other_engines", "in another engine's environment"),
    Rule(How.PARSED, r"standin\.train", "takes hours"),
    Rule(How.PARSED, r"transformers serve|--server\b", "other tests start a server"),
    Rule(
        How.SLOW, r"qgpu-run (verify|fuzz|bench|engines|scale|text-speed|eval|tokens)\b", "a sweep"
    ),
    Rule(How.SLOW, r"qgpu-run (launch|watch|calc|ask|chat)\b", "a large model", unless=NO_MODEL),
    Rule(How.SLOW, r"uv run qgpu( |$)", "a large model", unless=NO_MODEL),
    Rule(How.SLOW, r"qgpu-merge (build|synthesize)\b", "a large model", unless="--profile nano"),
    Rule(How.SLOW, r"kernels/(regenerate|check_native)\.py|docs/scripts/\w+\.py", "all kernels"),
)
"""The first that fits decides; a command that none fits is run with the quick tests."""


class DocumentError(Exception):
    """A command that the documents show and that cannot be right, with its place."""


@dataclass(frozen=True)
class Command:
    """One command of a document.

    Attributes:
        page: the file, relative to the repository.
        line: of the command in the file, from 1.
        output: what is shown below it, None where nothing is said about that.
        marked: what the comment above the fence says.
    """

    page: str
    line: int
    text: str
    output: str | None = None
    marked: str = ""

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.page}:{self.line}"

    @property
    def how(self) -> How:
        """When the tests run it."""
        word = self.marked.partition(",")[0].strip()
        if word in ("slow", "parsed"):
            return How(word)
        return next((rule.how for rule in RULES if rule.fits(self.text)), How.QUICK)

    @property
    def status(self) -> int:
        """Its exit status."""
        found = re.fullmatch(r"status (\d)", self.marked)
        return int(found[1]) if found else 0

    @property
    def quit_key(self) -> str | None:
        """What closes the program if it takes the whole terminal, else None."""
        if re.search(r"--headless|--screenshot|--help|--plain|\|", self.text):
            return None
        if re.search(r"qgpu-run watch\b", self.text):
            return "q"
        return "\x04" if re.search(r"uv run qgpu( |$)|qgpu-run chat\b", self.text) else None


def pages() -> list[Path]:
    """The Markdown files of the repository; a file and a link to it count once."""
    places = ("*.md", "docs/**/*.md", "kernels/*.md", "packages/*/README.md")
    return sorted(p for place in places for p in ROOT.glob(place) if not p.is_symlink())


def commands(page: Path) -> list[Command]:
    """All commands of a page, in order.

    Raises:
        DocumentError: commands in a block that does not say that it holds some.
    """
    name = page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name
    found: list[Command] = []
    marked = ""
    for token in MarkdownIt("commonmark").parse(page.read_text()):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "html_block":
            marks = re.findall(r"<!--\s*commands:\s*(.*?)\s*-->", token.content, re.DOTALL)
            marked = marks[-1] if marks else ""
            if marked and not re.match(r"slow$|parsed, \w|status \d$", marked):
                raise DocumentError(f"{name}:{line}: unknown mark {marked!r}")
            continue
        if token.type == "fence" and token.info in SHELL:
            for offset, text in split_script(token.content):
                found.append(Command(name, line + 1 + offset, text, marked=marked))
        elif token.type == "fence" and token.info == CONSOLE:
            for offset, text, output in split_console(token.content):
                found.append(Command(name, line + 1 + offset, text, output, marked))
        elif token.type in ("fence", "code_block") and COMMANDS.search(token.content):
            raise DocumentError(f"{name}:{line}: commands in a block that is not `sh`")
        marked = ""
    return found


def inline_commands(page: Path) -> Iterator[tuple[str, str]]:
    """Commands in running text and tables, with their places: `qgpu-ptx lower k.ptx`."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        for child in token.children or ():
            if child.type == "code_inline" and re.match(r"(uv run )?qgpu(-\w+)? \w", child.content):
                line = token.map[0] + 1 if token.map else 0
                yield f"{page.name}:{line}", child.content


def split_script(script: str) -> Iterator[tuple[int, str]]:
    """Commands of a script with the lines they start in, from 0; comments are left out."""
    lines = script.splitlines()
    at = 0
    while at < len(lines):
        start = at
        text = lines[at]
        while text.endswith("\\"):
            at += 1
            text += "\n" + lines[at]
        if here := re.search(r"<<-?'?(\w+)'?", text):
            while lines[at] != here[1]:
                at += 1
                text += "\n" + lines[at]
        at += 1
        if text.strip() and not text.lstrip().startswith("#"):
            yield start, text


def split_console(session: str) -> Iterator[tuple[int, str, str]]:
    """Commands of a session, with the lines they start in and what they print.

    A line behind `> ` goes on with the command above it.
    """
    start, text, output = 0, "", ""
    for number, line in enumerate(session.splitlines()):
        if line.startswith("$ "):
            if text:
                yield start, text, output
            start, text, output = number, line[2:], ""
        elif (line == ">" or line.startswith("> ")) and not output:
            text += "\n" + line[2:]
        else:
            output += line + "\n"
    if text:
        yield start, text, output


def same_output(shown: str, printed: str) -> bool:
    """Whether a command printed what is shown, where `...` and space around it is anything."""
    parts = (re.escape(part) for part in re.split(r"\s*\.\.\.\s*", _tidy(shown)))
    return re.fullmatch(".*?".join(parts), _tidy(printed), re.DOTALL) is not None


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def check_command(command: Command) -> None:
    """Parses every part of a command as the program would, without running it.

    Raises:
        DocumentError: a program, subcommand, option, value or file that does not exist.
    """
    for words in simple_commands(command.text):
        try:
            _check_words(words)
        except (click.ClickException, DocumentError) as error:
            message = error.format_message() if isinstance(error, click.ClickException) else error
            raise DocumentError(f"{command.place}: {shlex.join(words)}: {message}") from None


def check_options(text: str) -> None:
    """Checks the subcommand and the options of a command whose arguments may be placeholders.

    Raises:
        DocumentError: one does not exist.
    """
    program, *arguments = _without_uv(shlex.split(text))
    command = _click_command(program)
    if isinstance(command, click.Group):
        found = command.get_command(click.Context(command), arguments[0])
        if found is None:
            raise DocumentError(f"{text}: no command {arguments[0]!r}")
        command = found
    known = {name for option in command.params for name in [*option.opts, *option.secondary_opts]}
    wrong = {word for word in arguments if word.startswith("--")} - known - {"--help"}
    if wrong:
        raise DocumentError(f"{text}: no option {', '.join(sorted(wrong))}")


def simple_commands(text: str) -> Iterator[list[str]]:
    """The words of each program call, without `uv run`, here-documents and redirections."""
    text = re.sub(r"<<-?'?(\w+)'?(.*?)\n.*?^\1$", r"\2", text, flags=re.DOTALL | re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        line = re.sub(r"\s[12]>", " >", line)
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        skip = False
        for word in [*lexer, ";"]:
            if skip:
                skip = False
            elif set(word) <= set("<>&") and set(word) & set("<>"):
                skip = True
            elif set(word) <= set(";|&"):
                if words:
                    yield _without_uv(words)
                words = []
            else:
                words.append(word)


def _without_uv(words: list[str]) -> list[str]:
    if words[:2] != ["uv", "run"]:
        return words
    words = words[2:]
    while words and words[0].startswith("--"):
        words = words[2 if words[0] == "--group" else 1 :]
    return words


def _check_words(words: list[str]) -> None:
    program, *arguments = words
    if re.match(r"qgpu(-|$)", program):
        _parse(program, arguments)
    elif program not in PROGRAMS:
        raise DocumentError(f"no rule about the program {program!r}")
    elif program == "python" and arguments[0] == "-m" and find_spec(arguments[1]) is None:
        raise DocumentError(f"no module {arguments[1]}")
    for word in arguments:
        if re.match(r"(kernels|docs|packages)/", word) and not (ROOT / word).exists():
            raise DocumentError(f"no file {word}")


def _click_command(program: str) -> click.Command:
    for entry in entry_points(group="console_scripts", name=program):
        command = entry.load()
        assert isinstance(command, click.Command)
        return command
    raise DocumentError(f"no program {program!r}")


def _parse(program: str, arguments: list[str]) -> None:
    command = _click_command(program)
    context = command.make_context(program, list(arguments), resilient_parsing=False)
    while isinstance(command, click.Group):
        name, found, left = command.resolve_command(context, _left(context))
        assert found is not None
        command = found
        context = command.make_context(name, left, parent=context)


def _left(context: click.Context) -> list[str]:
    """What a group's own options left for its subcommand."""
    protected: list[str] = getattr(context, "_protected_args", [])
    return [*protected, *context.args]
