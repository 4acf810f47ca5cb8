"""A kernel file, CUDA or PTX, to its syntax tree."""

from __future__ import annotations

from pathlib import Path

from qgpu_ptx.cuda_to_ptx import cuda_to_ptx
from qgpu_ptx.diagnostics import CompilerNotFoundError
from qgpu_ptx.ptx_ast import Module
from qgpu_ptx.source_to_ast import parse_ptx
from qgpu_ptx.text_files import read_text


def read_module(path: Path, compiler: str | None = None) -> Module:
    """The AST of a .ptx file, or of a .cu file compiled first.

    Where no compiler is installed, and none is asked for, the .ptx beside a .cu file is taken.

    Raises:
        QgpuPtxError: the file cannot be read, compiled or parsed.
    """
    if path.suffix != ".cu":
        return parse_ptx(read_text(path), str(path))
    try:
        source = cuda_to_ptx(path, compiler=compiler)
    except CompilerNotFoundError:
        shipped = path.with_suffix(".ptx")
        if compiler is not None or not shipped.is_file():
            raise
        return parse_ptx(read_text(shipped), str(shipped))
    return parse_ptx(source.text, str(path), source.compiler)
