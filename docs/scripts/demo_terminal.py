"""A terminal that is recorded: a program in a pty, its screen, and a frame a change."""

from __future__ import annotations

import copy
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyte

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "space": " ",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "page-up": "\x1b[5~",
    "page-down": "\x1b[6~",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    "f3": "\x1bOR",
    "f4": "\x1bOS",
    **{f"ctrl-{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}
"""Keys by name; any other single character is itself."""

ALTERNATE = 1049
"""The mode in which a program has the screen for itself."""

UPDATE = 2026
"""The mode in which a program draws what is to be seen at once."""
ASKS_FOR_UPDATES, HAS_UPDATES = b"\x1b[?2026$p", b"\x1b[?2026;2$y"


class DemoError(Exception):
    """A step that cannot be done."""


@dataclass(frozen=True)
class Cell:
    """A character on the screen and how it looks; colours are pyte's names or six digits."""

    text: str
    ink: str
    paper: str
    bold: bool


Rows = tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Frame:
    """A screen, the cursor's column and row if it is shown, and for how long, in seconds."""

    rows: Rows
    cursor: tuple[int, int] | None
    seconds: float


class Screen(pyte.Screen):
    """A screen that gives back what was on it when a program leaves the alternate screen.

    Attributes:
        drawing: a program is in the middle of an update.
    """

    drawing = False
    _kept: Any = None

    def set_mode(self, *modes: int, **options: Any) -> None:
        if options.get("private") and ALTERNATE in modes:
            self._kept = copy.deepcopy(self.buffer), copy.copy(self.cursor)
            self.erase_in_display(2)
        if options.get("private") and UPDATE in modes:
            self.drawing = True
        super().set_mode(*modes, **options)

    def reset_mode(self, *modes: int, **options: Any) -> None:
        super().reset_mode(*modes, **options)
        if options.get("private") and UPDATE in modes:
            self.drawing = False
        if options.get("private") and ALTERNATE in modes and self._kept:
            self.buffer, self.cursor = self._kept
            self._kept = None

    def rows(self) -> Rows:
        """All cells."""
        return tuple(
            tuple(_cell(self.buffer[y][x]) for x in range(self.columns)) for y in range(self.lines)
        )


def _cell(char: Any) -> Cell:
    ink, paper = (char.bg, char.fg) if char.reverse else (char.fg, char.bg)
    if char.reverse:
        ink = "black" if ink == "default" else ink
        paper = "white" if paper == "default" else paper
    return Cell(char.data, ink, paper, char.bold)


class Terminal:
    """A program in a terminal, and what its screen showed.

    Args:
        arguments: the program.
        size: columns and rows.
        frames_a_second: of a screen that changes all the time, at most.
        longest: seconds that a screen without a change is shown while something is waited for.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        size: tuple[int, int],
        folder: Path,
        variables: dict[str, str],
        frames_a_second: float = 10,
        longest: float = 1.5,
    ) -> None:
        self.frames: list[Frame] = []
        self._screen = Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._interval, self._longest = 1 / frames_a_second, longest
        self._since = time.monotonic()
        self._side, program = pty.openpty()
        self._resize(size)
        self._process = subprocess.Popen(
            arguments,
            cwd=folder,
            env=variables | {"TERM": "xterm-256color", "COLORTERM": "truecolor"},
            stdin=program,
            stdout=program,
            stderr=program,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(program, termios.TIOCSCTTY, 0),
        )
        os.close(program)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._side)

    def text(self) -> str:
        """What the screen shows."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def type(self, text: str, seconds: float) -> None:
        """Types text, `seconds` a character."""
        for character in text:
            os.write(self._side, character.encode())
            self._watch(seconds)
            self._keep(seconds)

    def press(self, key: str) -> None:
        """Presses a key.

        Raises:
            DemoError: there is none of this name.
        """
        if key not in KEYS and len(key) != 1:
            raise DemoError(f"no key {key!r}; there are {', '.join(KEYS)}")
        os.write(self._side, KEYS.get(key, key).encode())

    def wait(self, pattern: str, seconds: float) -> None:
        """Records until the screen shows a pattern.

        Raises:
            DemoError: it does not, within `seconds`.
        """
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text(), re.MULTILINE):
            if time.monotonic() > end or self._process.poll() is not None:
                raise DemoError(f"{pattern!r} did not come up; the screen:\n{self.text()}")
            self._watch(self._interval)
            self._keep()

    def pause(self, seconds: float) -> None:
        """Records for a while; a screen that does not change is shown all this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._watch(min(left, self._interval))
            self._keep(self._interval)

    def resize(self, size: tuple[int, int]) -> None:
        """Gives the terminal another size."""
        self._screen.resize(size[1], size[0])
        self._resize(size)
        os.killpg(self._process.pid, signal.SIGWINCH)

    def _resize(self, size: tuple[int, int]) -> None:
        shape = struct.pack("HHHH", size[1], size[0], 0, 0)
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, shape)

    def _watch(self, seconds: float) -> None:
        """Reads what the program writes for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self._side], [], [], left)[0]:
                return
            try:
                read = os.read(self._side, 65536)
            except OSError:
                return
            if ASKS_FOR_UPDATES in read:
                os.write(self._side, HAS_UPDATES)
            self._stream.feed(read)

    def _keep(self, at_least: float = 0.0) -> None:
        """Keeps the screen as a frame: a new one if it changed, else the last for longer."""
        if self._screen.drawing:
            return
        now = time.monotonic()
        passed, self._since = now - self._since, now
        shown = self._screen.rows()
        cursor = self._screen.cursor
        place = None if cursor.hidden else (cursor.x, cursor.y)
        if self.frames and self.frames[-1].rows == shown and self.frames[-1].cursor == place:
            last = self.frames[-1]
            longest = max(self._longest, last.seconds)
            seconds = last.seconds + at_least if at_least else min(longest, last.seconds + passed)
            self.frames[-1] = Frame(shown, place, seconds)
        else:
            self.frames.append(Frame(shown, place, at_least or self._interval))
