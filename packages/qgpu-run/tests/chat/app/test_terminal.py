"""The chat as a program of its own, in a real terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ...terminal import Terminal

PROGRAM = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from qgpu_run.chat.app import session
import conftest
model = conftest.Script("Let me see: " + conftest.call("sum([1, 2])"), "Three.")
opener = conftest.Opener(model)
from qgpu_run.chat.app import chat_app, plain
for module in (chat_app.ChatApp, plain.PlainChat):
    module.__init__.__kwdefaults__["opener"] = opener
from qgpu_run.commands.chat_command import command
command()
"""
"""The command with a scripted model in place of one that takes long to load."""


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def start(
    terminals: list[Terminal], *arguments: str, columns: int = 80, rows: int = 24
) -> Terminal:
    program = [sys.executable, "-c", PROGRAM, *arguments]
    terminals.append(Terminal(program, columns, rows))
    return terminals[-1]


def test_the_whole_screen(terminals: list[Terminal]) -> None:
    terminal = start(terminals)
    terminal.until("A scripted model.")
    # Ctrl+J is a line feed, Enter a carriage return.
    terminal.type("first\nsecond\nthird")
    terminal.until("third")
    terminal.type("\r")
    terminal.until("Three.")
    for words in ("first", "second", "third", "sum([1, 2])", "= 3"):
        assert words in terminal.text, terminal.text
    terminal.type("/he\t\r")
    terminal.until("leave")
    terminal.type("\x03")
    terminal.until("again quits")
    terminal.type("\x03")
    assert terminal.end() == 0


def test_keys_that_are_no_text(terminals: list[Terminal]) -> None:
    terminal = start(terminals)
    terminal.until("A scripted model.")
    terminal.type(b"caf\xe9 ")
    terminal.type("and more")
    terminal.until("caf\ufffd and more")
    # Alt+Enter as terminals send it that do not tell more of keys.
    terminal.type("\x1b\r")
    terminal.type("a second line")
    terminal.until("a second line")
    assert "Let me see" not in terminal.text
    terminal.type("\r")
    terminal.until("Three.")


def test_line_mode(terminals: list[Terminal]) -> None:
    terminal = start(terminals, "--plain")
    terminal.until("\n>\n")
    terminal.type("What is 1 + 2?\n")
    terminal.until("Three.")
    terminal.type("/calc 99999 * 99999\n")
    terminal.until("overflow")
    terminal.until("s)\n>\n")
    terminal.type("\x03")
    terminal.until("again quits")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_a_launch_is_ended_in_line_mode(terminals: list[Terminal], tmp_path: Path) -> None:
    (tmp_path / "loop.cu").write_text("__global__ void f(int* x) { while (x[0] == 0) x[1]++; }")
    terminal = start(terminals, "--plain", "--no-check")
    terminal.until("\n>\n")
    terminal.type(f"/run {tmp_path}/loop.cu --block 1 --arg x=0,0\n")
    time.sleep(1)
    terminal.type("\x03")
    terminal.until("error: cancelled")
    terminal.type("/calc 20 + 3\n")
    terminal.until("= 23")
    terminal.until("s)\n>\n")
    terminal.type("\x04")
    assert terminal.end() == 0


@pytest.mark.parametrize("way", ["SIGTERM", "SIGHUP", "closed"])
@pytest.mark.parametrize("mode", [[], ["--plain"]])
def test_the_end_of_the_terminal(terminals: list[Terminal], mode: list[str], way: str) -> None:
    terminal = start(terminals, *mode)
    terminal.until("A scripted model.")
    if way == "closed":
        os.close(terminal.master)
        terminal.process.wait(30)
        return
    terminal.process.send_signal(getattr(signal, way))
    terminal.end()


def piped(text: bytes, redirection: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """The program behind a pipe, in a shell that may redirect it."""
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" {redirection}', sys.executable, PROGRAM],
        input=text, capture_output=True, timeout=60, check=False, env={**os.environ, **more},
    )  # fmt: skip
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def test_a_pipe() -> None:
    done = piped(b"What is 1 + 2?\n")
    assert done.returncode == 0
    assert done.stdout.endswith("Three.\n")
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("redirection", ["<&-", ">&-"])
def test_closed_streams(redirection: str) -> None:
    done = piped(b"What is 1 + 2?\n", redirection)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_pipe_of_what_is_no_text() -> None:
    done = piped(b"caf\xe9\n/calc 1 + 1\n", PYTHONIOENCODING="utf-8:strict")
    assert done.returncode == 0, done.stderr
    assert "= 2" in done.stdout
