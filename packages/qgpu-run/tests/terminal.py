"""A program in a terminal of its own."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import time
from collections.abc import Sequence
from fcntl import ioctl
from termios import TIOCSCTTY, TIOCSWINSZ

import pyte

SECONDS = 60
"""In which what is waited for comes."""


class Terminal:
    """A program in a terminal that controls it, as a shell's does.

    Attributes:
        screen: what is seen.
        raw: all that the program wrote.
        master: the descriptor of the terminal's other side.
    """

    def __init__(
        self, arguments: Sequence[str], columns: int = 80, rows: int = 24, **more: str
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, child = pty.openpty()
        ioctl(child, TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            arguments, stdin=child, stdout=child, stderr=child, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", **more},
            preexec_fn=lambda: ioctl(0, TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(child)

    @property
    def text(self) -> str:
        """What is on the screen, without what is empty, and an end of line behind it."""
        lines = [line.rstrip() for line in self.screen.display]
        return "".join(f"{line}\n" for line in lines if line)

    def until(self, text: str) -> None:
        """Waits until a text is on the screen."""
        end = time.monotonic() + SECONDS
        while text not in self.text:
            if time.monotonic() > end or not self._read():
                raise AssertionError(self.text)

    def type(self, keys: str | bytes) -> None:
        """Presses keys."""
        os.write(self.master, keys.encode() if isinstance(keys, str) else keys)

    def paste(self, text: str) -> None:
        """Pastes, as terminals tell it to programs that want to know."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Gives the terminal another size."""
        ioctl(self.master, TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)
        self.process.send_signal(signal.SIGWINCH)

    def end(self) -> int:
        """Reads to the end; the exit status."""
        end = time.monotonic() + SECONDS
        while self._read() and time.monotonic() < end:
            pass
        return self.process.wait(SECONDS)

    def close(self) -> None:
        """Ends the program if it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def _read(self) -> bool:
        """Reads for a moment; whether more may come."""
        if select.select([self.master], [], [], 0.1)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return False
            self.raw += data
            self._stream.feed(data)
            return bool(data)
        return self.process.poll() is None
