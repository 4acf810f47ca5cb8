"""clang with the NVPTX back end, as a distribution's package or as ziglang's wheel.

Neither has CUDA's headers, so `minicuda.h` stands in for them.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from qgpu_ptx.compilers.compiler import ARCHITECTURE, PtxSource, run_compiler, tool_version

# PTX 6.3 is the first version with sm_75 and every `.sync` instruction.
PTX_FEATURE = "+ptx63"
_CLANG_NAMES = ("clang", *(f"clang-{version}" for version in range(25, 12, -1)))


def _flags() -> list[str]:
    header = resources.files("qgpu_ptx").joinpath("compilers/minicuda.h")
    return [
        "-nocudainc",
        "-nocudalib",
        "--cuda-path=/nonexistent",
        f"--cuda-gpu-arch=sm_{ARCHITECTURE}",
        "--cuda-device-only",
        # Handed to the back end directly: clang 14 has no --cuda-feature.
        *("-Xclang", "-target-feature", "-Xclang", PTX_FEATURE),
        "-include",
        str(header),
        # Line tables only: full debug information would keep every variable in memory.
        "-gline-tables-only",
        "-O2",
        "-S",
    ]


class ClangCompiler:
    """clang on PATH; a name with a version counts too."""

    name = "clang"
    how_to_install = "install clang from your distribution"

    def _program(self) -> str | None:
        return next((found for name in _CLANG_NAMES if (found := shutil.which(name))), None)

    def version(self) -> str | None:
        """clang's version, None without a clang that has the NVPTX target."""
        program = self._program()
        if program is None or not tool_version([program, "--print-targets"], r"(nvptx64)"):
            return None
        return tool_version([program, "--version"], r"version (\d[\d.]*)")

    def compile(self, path: Path, text: str, options: Sequence[str]) -> PtxSource:
        """Raises CudaCompileError."""
        command = [self._program() or "clang", "-x", "cuda", *_flags(), *options, str(path)]
        return run_compiler(self.name, command, path, text, self.version() or "unknown")


class ZigCompiler:
    """The clang inside the ziglang wheel, which also exists for macOS."""

    name = "zig"
    how_to_install = "pip install ziglang"

    def version(self) -> str | None:
        """zig's version, None where ziglang is not installed."""
        if importlib.util.find_spec("ziglang") is None:
            return None
        return tool_version([sys.executable, "-m", "ziglang", "version"], r"(\d[\w.+-]*)")

    def compile(self, path: Path, text: str, options: Sequence[str]) -> PtxSource:
        """Raises CudaCompileError. zig knows CUDA by the file's suffix alone."""
        command = [sys.executable, "-m", "ziglang", "c++", *_flags(), *options, str(path)]
        return run_compiler(self.name, command, path, text, self.version() or "unknown")
