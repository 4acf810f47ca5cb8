"""What the user wrote, kept between runs in a file that only the user can read."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from platformdirs import user_state_path

KEPT = 1000
"""Entries that are kept."""

LARGEST_ENTRY = 100_000
"""Characters; longer ones are not kept."""


def history_file() -> Path:
    """Where it is kept, by the system's habits: ~/.local/state/qgpu on Linux."""
    return user_state_path("qgpu", appauthor=False) / "chat_history.jsonl"


class History:
    """Entries, the newest last, and a place among them.

    A file that cannot be read or written is done without.

    Args:
        path: one JSON string a line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries = self._read()
        self._at = len(self.entries)
        self._draft = ""

    def add(self, text: str) -> None:
        """Takes what was sent; the place is behind it."""
        if text and len(text) <= LARGEST_ENTRY and self.entries[-1:] != [text]:
            self.entries.append(text)
            self._append(text)
        self._at = len(self.entries)

    def older(self, shown: str) -> str | None:
        """The entry before the place, None if there is none; keeps a draft for the way back."""
        if self._at == 0:
            return None
        if self._at == len(self.entries):
            self._draft = shown
        self._at -= 1
        return self.entries[self._at]

    def newer(self) -> str | None:
        """The entry behind the place, or the draft; None at the end."""
        if self._at == len(self.entries):
            return None
        self._at += 1
        return self._draft if self._at == len(self.entries) else self.entries[self._at]

    def _read(self) -> list[str]:
        entries: list[str] = []
        with suppress(OSError):
            for line in self._path.read_text("utf-8", errors="replace").splitlines():
                # What another program wrote there is passed over.
                with suppress(ValueError, RecursionError):
                    entry = json.loads(line)
                    if isinstance(entry, str) and entry:
                        entries.append(entry)
            if len(entries) > 2 * KEPT:
                entries = entries[-KEPT:]
                self._rewrite(entries)
        return entries[-KEPT:]

    def _rewrite(self, entries: list[str]) -> None:
        beside = self._path.with_suffix(f".{os.getpid()}")
        with _private(beside, os.O_TRUNC) as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)
        beside.replace(self._path)

    def _append(self, text: str) -> None:
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _private(self._path, os.O_APPEND) as file:
                file.write(json.dumps(text) + "\n")


def _private(path: Path, flags: int) -> TextIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8")
