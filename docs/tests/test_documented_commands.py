"""Every command that a document shows exists, runs, and prints what is shown."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from documented_commands import (
    ROOT,
    Command,
    DocumentError,
    How,
    check_command,
    check_options,
    commands,
    inline_commands,
    pages,
    same_output,
    simple_commands,
)
from run_command import environment, run_command, run_in_terminal

PAGES = {page.relative_to(ROOT).as_posix(): page for page in pages()}
QUICK_SECONDS, SLOW_SECONDS = 600, 3600


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """$QGPU_CACHE, or a fresh one that the commands share."""
    return Path(os.environ.get("QGPU_CACHE") or tmp_path_factory.mktemp("cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of what commands read and could write."""
    for name in ("kernels", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True)
    (tmp_path / "packages").symlink_to(ROOT / "packages")
    (tmp_path / "tmp").mkdir()
    return tmp_path


def _with(*how: How) -> Iterator[str]:
    for name, page in PAGES.items():
        try:
            found = any(command.how in how for command in commands(page))
        except DocumentError:
            found = True  # and the page's test says what is wrong
        if found:
            yield name


def _run(page: str, how: tuple[How, ...], folder: Path, cache: Path, seconds: float) -> None:
    variables = environment(folder, cache)
    for command in commands(PAGES[page]):
        if command.how not in how:
            continue
        text = command.text.replace("/tmp/", f"{folder}/tmp/")
        if (key := command.quit_key) is None:
            done = run_command(text, folder, variables, seconds)
        else:
            done = run_in_terminal(text, folder, variables, seconds, key)
        what = f"{command.place}: {command.text}\n{done.stdout}\n{done.stderr}"
        assert done.status == command.status, what
        if command.output is not None:
            printed = done.stdout + (done.stderr if command.status else "")
            printed = printed.replace(f"{folder}/tmp/", "/tmp/")
            assert same_output(command.output, printed), f"{what}\nshown:\n{command.output}"


@pytest.mark.timeout(4 * QUICK_SECONDS)
@pytest.mark.parametrize("page", list(_with(How.QUICK)))
def test_quick_commands_run(page: str, folder: Path, cache: Path) -> None:
    _run(page, (How.QUICK,), folder, cache, QUICK_SECONDS)


@pytest.mark.slow
@pytest.mark.timeout(8 * SLOW_SECONDS)
@pytest.mark.parametrize("page", list(_with(How.SLOW)))
def test_slow_commands_run(page: str, folder: Path, cache: Path) -> None:
    _run(page, (How.QUICK, How.SLOW), folder, cache, SLOW_SECONDS)


def test_every_command_can_be_parsed() -> None:
    found = [command for page in PAGES.values() for command in commands(page)]
    assert len(found) > 50
    for command in found:
        check_command(command)


def test_commands_in_running_text_have_these_options() -> None:
    found = [shown for page in PAGES.values() for shown in inline_commands(page)]
    assert len(found) > 20
    for place, text in found:
        try:
            check_options(text)
        except DocumentError as error:
            raise AssertionError(f"{place}: {error}") from None


# The checks themselves.


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


def test_commands_of_a_page(page: Path) -> None:
    page.write_text(
        "# A\n\n```sh\n# why\nqgpu-isa list\ncat > a <<'X'\nuv run\nX\n"
        "qgpu-run calc \\\n  1\n```\n\n"
        "<!-- commands: status 1 -->\n```console\n$ qgpu-run calc \\\n> '1 / 0'\nerror: ...\n"
        "$ cat a\n```\n\n```sh\nqgpu-isa list\n```\n"
    )
    assert [(c.line, c.text, c.output, c.status, c.how) for c in commands(page)] == [
        (5, "qgpu-isa list", None, 0, How.QUICK),
        (6, "cat > a <<'X'\nuv run\nX", None, 0, How.QUICK),
        (9, "qgpu-run calc \\\n  1", None, 0, How.SLOW),
        (15, "qgpu-run calc \\\n'1 / 0'", "error: ...\n", 1, How.SLOW),
        (18, "cat a", "", 1, How.QUICK),
        (22, "qgpu-isa list", None, 0, How.QUICK),
    ]


@pytest.mark.parametrize(
    "text", ["```\nuv run x\n```\n", "```text\n$ x\n```\n", "    qgpu-isa list\n"]
)
def test_commands_in_other_blocks_are_refused(page: Path, text: str) -> None:
    page.write_text(text)
    with pytest.raises(DocumentError, match=r"page.md:1: commands in a block"):
        commands(page)


def test_unknown_marks_are_refused(page: Path) -> None:
    page.write_text("<!-- commands: skip -->\n```sh\nqgpu-isa list\n```\n")
    with pytest.raises(DocumentError, match="unknown mark 'skip'"):
        commands(page)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("uv run qgpu-run launch kernels/reduce/dot.cu --check", How.SLOW),
        ("uv run qgpu-run launch kernels/reduce/dot.cu --engine interpreter", How.QUICK),
        ("uv run qgpu-merge build --base Qwen/Qwen3.5-2B -o out", How.PARSED),
        ("uv run qgpu-run fuzz --profile nano", How.SLOW),
        ("uv run pytest", How.PARSED),
        ("uv run qgpu", How.SLOW),
        ("uv run qgpu-new thing", How.QUICK),
    ],
)
def test_classes(text: str, how: How) -> None:
    assert Command("p", 1, text).how is how


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("uv run qgpu-run launch kernels/reduce/dot.cu --quick", "No such option"),
        ("qgpu-isa lists", "No such command 'lists'"),
        ("qgpu-circuit report --profile tiny", "'tiny' is not one of"),
        ("qgpu-isa list | qgpu-isa show", "Missing argument"),
        ("uv run qgpu-run launch kernels/none.cu", "no file kernels/none.cu"),
        ("make all", "no rule about the program 'make'"),
        ("python -m qgpu_none", "no module qgpu_none"),
    ],
)
def test_wrong_commands_are_found(text: str, problem: str) -> None:
    with pytest.raises(DocumentError, match=rf"p:7: .*{problem}"):
        check_command(Command("p", 7, text))


@pytest.mark.parametrize("text", ["qgpu-isa lists X", "qgpu-isa run k --thread 2"])
def test_wrong_options_in_running_text_are_found(text: str) -> None:
    with pytest.raises(DocumentError, match=r"no (command 'lists'|option --thread)"):
        check_options(text)


def test_words_of_a_command() -> None:
    text = "cat > a <<'X' | tail -1\nqgpu-none\nX\n"
    text += "uv run --group docs mkdocs build 2> b && x \\\n  y # z"
    assert list(simple_commands(text)) == [
        ["cat"], ["tail", "-1"], ["mkdocs", "build"], ["x", "y"]
    ]  # fmt: skip


def test_outputs() -> None:
    assert same_output("a  \n...c\n", "a\nb\nbc")
    assert same_output("1 in ... s", "1 in 0.3 s\n")
    assert same_output("a long\n... line\nb", "a long and longer line\nb")
    assert not same_output("a\n", "a\nb\n")
    assert not same_output("a.c\n", "abc\n")
