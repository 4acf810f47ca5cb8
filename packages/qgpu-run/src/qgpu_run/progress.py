"""One line on a terminal that says how far a launch is."""

from __future__ import annotations

import sys
import time

import click

INTERVAL_SECONDS = 0.2


class Progress:
    """Counts tokens that the model read and wrote; silent unless stderr is a terminal."""

    def __init__(self, *, shown: bool = True) -> None:
        self._shown = shown and sys.stderr.isatty()
        self._read = self._written = 0
        self._started = time.monotonic()
        self._last = 0.0

    def read(self, tokens: int) -> None:
        """Takes tokens that went through the model."""
        self._read += tokens
        self._show()

    def wrote(self, cta: int, token: int) -> None:
        """Takes one decoded token."""
        self._written += 1
        self._show()

    def done(self) -> None:
        """Wipes the line."""
        if self._shown and self._last:
            click.echo("\r\x1b[K", nl=False, err=True)

    def _show(self) -> None:
        now = time.monotonic()
        if not self._shown or now - self._last < INTERVAL_SECONDS:
            return
        self._last = now
        text = f"{self._read} tokens read, {self._written} written, {now - self._started:.0f} s"
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)
