"""Text files that are read and written, with this package's errors."""

from __future__ import annotations

from pathlib import Path

from qgpu_isa import files

from qgpu_ptx.diagnostics import InputFileError


def read_text(path: Path) -> str:
    """A text file's content. Raises InputFileError."""
    try:
        return files.read_text(path)
    except files.InputError as error:
        raise InputFileError(str(error)) from None


def write_text(path: Path, text: str) -> None:
    """Writes beside `path` and renames, so that nobody sees half a file. Raises InputFileError."""
    try:
        files.write_text(path, text)
    except files.InputError as error:
        raise InputFileError(str(error)) from None
