"""The chat as a program of its own, in a real terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path

import pyte
import pytest

PROGRAM = """
import fcntl, os, sys, termios
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.path.insert(0, {folder!r})
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
"""The command with a scripted model in place of one that takes long to load.

The terminal is the one that controls it, as a shell's is.
"""


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, arguments: list[str], columns: int, rows: int, **more: str) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.master, child = pty.openpty()
        ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        program = PROGRAM.format(folder=str(Path(__file__).parent))
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdin=child, stdout=child, stderr=child, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", **more},
        )  # fmt: skip
        os.close(child)

    def until(self, text: str) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if text in self.text:
                return
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self._stream.feed(os.read(self.master, 65536))
                except OSError:
                    break
        raise AssertionError(self.text)

    @property
    def text(self) -> str:
        """What is on the screen, without what is empty, and an end of line behind it."""
        lines = [line.rstrip() for line in self.screen.display]
        return "".join(f"{line}\n" for line in lines if line)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def end(self) -> int:
        """Reads to the end; the exit status."""
        end = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self._stream.feed(os.read(self.master, 65536))
                except OSError:
                    break
        return self.process.wait(30)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def start(
    terminals: list[Terminal], *arguments: str, columns: int = 80, rows: int = 24
) -> Terminal:
    terminals.append(Terminal([*arguments], columns, rows))
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


def test_a_pipe() -> None:
    program = PROGRAM.format(folder=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="What is 1 + 2?\n", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.endswith("Three.\n")
    assert "\x1b" not in done.stdout
