"""CUDA C to PTX by whichever compiler is installed; which one was used is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qgpu_ptx.compilers.clang import ClangCompiler, ZigCompiler
from qgpu_ptx.compilers.compiler import CudaCompiler, PtxSource
from qgpu_ptx.compilers.nvcc import NvccCompiler
from qgpu_ptx.compilers.nvrtc import NvrtcCompiler
from qgpu_ptx.diagnostics import CompilerNotFoundError
from qgpu_ptx.text_files import read_text

# In order of preference. NVRTC first: it comes with the package and is the fastest.
COMPILERS: tuple[CudaCompiler, ...] = (
    NvrtcCompiler(),
    NvccCompiler(),
    ClangCompiler(),
    ZigCompiler(),
)


def find_compiler(name: str | None = None) -> CudaCompiler:
    """The compiler called `name`, or the first that is installed.

    Raises CompilerNotFoundError, which says how to get one.
    """
    names = [compiler.name for compiler in COMPILERS]
    if name is not None and name not in names:
        raise CompilerNotFoundError(f"there is no compiler '{name}'", found=name, expected=names)
    for compiler in COMPILERS:
        if name in (None, compiler.name) and compiler.version() is not None:
            return compiler
    hints = "; ".join(f"{c.name}: {c.how_to_install}" for c in COMPILERS if name in (None, c.name))
    raise CompilerNotFoundError(
        f"compiler '{name}' is not installed" if name else "no CUDA compiler is installed",
        hint=hints,
    )


def cuda_to_ptx(
    path: Path, *, compiler: str | None = None, options: Sequence[str] = ()
) -> PtxSource:
    """Compiles a .cu file for compute_75, with line information.

    `options` go to the compiler as they are. Raises InputFileError, CompilerNotFoundError,
    CudaCompileError.
    """
    text = read_text(path)
    return find_compiler(compiler).compile(path, text, tuple(options))
