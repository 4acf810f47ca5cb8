"""Many kernels through one loaded model by teacher forcing, with a table of what was found."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from qgpu_isa.errors import QgpuError
from qgpu_isa.files import write_text
from qgpu_isa.machine_config import MachineConfig
from qgpu_ptx.diagnostics import QgpuPtxError
from qgpu_ptx.launch_options import LaunchOptions

from qgpu_run.engines.engine import Engine
from qgpu_run.kernel_to_launch import kernel_to_request
from qgpu_run.run_request import run_request

SOURCE_SUFFIXES = (".cu", ".ptx")


@dataclass(frozen=True)
class VerifiedKernel:
    """What one kernel's verification found.

    Attributes:
        kernel: path without its suffix.
        ran: whether it could be lowered for the machine.
        exact: every decoded token and every word of memory is the interpreter's.
        expected_ok: the outputs are those of the launch spec.
        tokens, setup_tokens: decoded and fed tokens.
        min_margin: smallest logit margin in bf16 steps; None if nothing was decoded.
        seconds: of the forward passes.
        problem: what went wrong, if anything did.
    """

    kernel: str
    ran: bool
    exact: bool
    expected_ok: bool
    tokens: int = 0
    setup_tokens: int = 0
    min_margin: float | None = None
    seconds: float = 0.0
    problem: str = ""

    @property
    def state(self) -> str:
        """What was found, in words."""
        if not self.ran:
            return f"not run: {self.problem}"
        return "exact" if self.exact and self.expected_ok else f"FAILED {self.problem}"


def find_kernels(paths: Iterable[Path]) -> list[Path]:
    """Kernel sources among files and folders; a .ptx beside a .cu of its name is left out."""
    found: dict[Path, Path] = {}
    for path in paths:
        files = sorted(_files_below(path)) if path.is_dir() else [path]
        for suffix in SOURCE_SUFFIXES:
            for file in files:
                if file.suffix == suffix and (file == path or file.with_suffix(".toml").is_file()):
                    found.setdefault(file.with_suffix(""), file)
    return [found[key] for key in sorted(found)]


def _files_below(folder: Path) -> Iterator[Path]:
    """All files in a folder and its folders, of which some may be links."""
    for root, _, names in os.walk(folder, followlinks=True):
        yield from (Path(root, name) for name in names)


def verify_kernels(
    files: Iterable[Path], config: MachineConfig, engine: Engine, max_tokens: int
) -> Iterator[VerifiedKernel]:
    """Verifies kernel after kernel; one that cannot be lowered is reported, not raised."""
    for file in files:
        name = f"{file.parent.name}/{file.stem}"
        started = time.monotonic()
        try:
            request = kernel_to_request(file, LaunchOptions(), config)
            outcome = run_request(request, engine, verify=True, max_tokens=max_tokens)
        except (QgpuError, QgpuPtxError) as error:
            yield VerifiedKernel(name, False, False, False, problem=str(error).splitlines()[0])
            continue
        yield VerifiedKernel(
            name,
            ran=True,
            exact=bool(outcome.exact),
            expected_ok=bool(outcome.expected_ok),
            tokens=outcome.tokens,
            setup_tokens=outcome.setup_tokens,
            min_margin=outcome.min_margin,
            seconds=time.monotonic() - started,
            problem="; ".join(outcome.problems),
        )


def write_results(path: Path, results: list[VerifiedKernel]) -> None:
    """Writes the results as JSON, beside and renamed."""
    write_text(path, json.dumps([asdict(r) for r in results], indent=1) + "\n")
