"""What a CUDA compiler is, and helpers that all of them share."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from qgpu_ptx.diagnostics import CudaCompileError, SourceText, Span

# The oldest architecture that NVIDIA's current compilers still take. Its PTX has every integer
# instruction that this package needs, and nothing newer.
ARCHITECTURE = "75"
TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class PtxSource:
    """PTX text, the compiler and version that wrote it, and the .cu file it came from."""

    text: str
    compiler: str
    version: str
    path: Path


class CudaCompiler(Protocol):
    """A compiler from CUDA C to PTX."""

    @property
    def name(self) -> str:
        """Short name, as in `--compiler`."""

    @property
    def how_to_install(self) -> str:
        """One phrase for the message that it is missing."""

    def version(self) -> str | None:
        """Version, None where the compiler is not installed."""

    def compile(self, path: Path, text: str, options: Sequence[str]) -> PtxSource:
        """PTX for `text`, which is the content of `path`. Raises CudaCompileError."""


# "k.cu(3): error: ..." (NVRTC, nvcc) and "k.cu:3:7: error: ..." (clang).
_ERROR = re.compile(
    r"^(?P<file>[^\n(:]+)(?:\((?P<line>\d+)\)|:(?P<clang_line>\d+):(?P<column>\d+)):\s*"
    r"(?:fatal |catastrophic )?error\s*:\s*(?P<message>[^\n]*)",
    re.MULTILINE,
)
_MISSING_HEADER = re.compile(r"cannot open source file|file not found|No such file")
HEADER_HINT = (
    "standard headers such as stdio.h are not available: a kernel is device code alone, and CUDA's "
    "built-in functions need no #include; headers of your own are found beside the .cu file"
)


def compile_error(compiler: str, path: Path, text: str, log: str) -> CudaCompileError:
    """The error for a compiler's log, placed at the first error that names a line."""
    match = _ERROR.search(log)
    if match is None:
        return CudaCompileError(f"{compiler} cannot compile {path}", log=log)
    hint = HEADER_HINT if _MISSING_HEADER.search(match["message"]) else None
    span: Span | None = None
    number = int(match["line"] or match["clang_line"])
    lines = text.split("\n")
    if Path(match["file"]).name == path.name and 1 <= number <= len(lines):
        line = lines[number - 1]
        start = sum(len(before) + 1 for before in lines[: number - 1])
        indent = len(line) - len(line.lstrip())
        column = int(match["column"]) - 1 if match["column"] else indent
        span = SourceText(str(path), text).span(start + min(column, len(line)), start + len(line))
    return CudaCompileError(f"{compiler}: {match['message']}", log=log, span=span, hint=hint)


def run_compiler(
    name: str, command: Sequence[str], path: Path, text: str, version: str
) -> PtxSource:
    """Runs a compiler that takes `-o FILE`. Raises CudaCompileError with its output."""
    with tempfile.TemporaryDirectory(prefix="qgpu-ptx-") as folder:
        target = Path(folder) / "kernel.ptx"
        try:
            done = subprocess.run(
                [*command, "-o", str(target)],
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CudaCompileError(f"{name} did not run: {error}", log="") from None
        if done.returncode != 0 or not target.exists():
            raise compile_error(name, path, text, done.stderr or done.stdout)
        return PtxSource(target.read_text(encoding="utf-8"), name, version, path)


def tool_version(command: Sequence[str], pattern: str) -> str | None:
    """The version that a tool prints, None where it is missing or prints something else."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(pattern, done.stdout + done.stderr)
    return match[1] if match and done.returncode == 0 else None
