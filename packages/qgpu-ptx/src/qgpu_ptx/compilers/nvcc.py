"""nvcc of the CUDA toolkit."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from qgpu_ptx.compilers.compiler import ARCHITECTURE, PtxSource, run_compiler, tool_version


class NvccCompiler:
    """`nvcc -ptx`, found on PATH or under CUDA's usual folder."""

    name = "nvcc"
    how_to_install = "install the CUDA toolkit"

    def _program(self) -> str | None:
        return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")

    def version(self) -> str | None:
        """The toolkit's release, None without nvcc."""
        program = self._program()
        return tool_version([program, "--version"], r"V(\d[\d.]*)") if program else None

    def compile(self, path: Path, text: str, options: Sequence[str]) -> PtxSource:
        """Raises CudaCompileError."""
        command = [
            self._program() or "nvcc",
            "-ptx",
            f"-arch=compute_{ARCHITECTURE}",
            "-lineinfo",
            *options,
            str(path),
        ]
        return run_compiler(self.name, command, path, text, self.version() or "unknown")
