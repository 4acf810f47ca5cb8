"""Files that commands read and write."""

from __future__ import annotations

from pathlib import Path

from qgpu_isa import files

from qgpu_ptx.diagnostics import InputFileError
from qgpu_ptx.ptx_ast import Module


def read_text(path: Path) -> str:
    """A text file's content. Raises InputFileError."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"cannot read {path}: {error}") from None


def write_text(path: Path, text: str) -> None:
    """Writes beside `path` and renames, so that nobody sees half a file. Raises InputFileError."""
    try:
        files.write_text(path, text)
    except files.InputError as error:
        raise InputFileError(str(error)) from None


def read_module(path: Path, compiler: str | None = None) -> Module:
    """The AST of a .ptx file, or of a .cu file compiled first. Raises QgpuPtxError."""
    from qgpu_ptx.cuda_to_ptx import cuda_to_ptx
    from qgpu_ptx.source_to_ast import parse_ptx

    if path.suffix == ".cu":
        source = cuda_to_ptx(path, compiler=compiler)
        return parse_ptx(source.text, str(path), source.compiler)
    return parse_ptx(read_text(path), str(path))
