"""What a bare `qgpu-merge build` merges, kept in the user's cache.

Entries are keyed by the profile and by the sources that decide their content, so a new version of
the machine never meets an old checkpoint.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from qgpu_isa.cache import CIRCUIT_SOURCES, cache_root, cached_circuit, source_key

from qgpu_merge.errors import CircuitError, OutputError

STDERR = 2
"""File descriptor that the compiler's own output goes to: stdout is for the path alone."""

MODEL_SOURCES = (*CIRCUIT_SOURCES, "qgpu_merge")

Report = Callable[[str], None]


def cached_model(profile: str) -> Path:
    """Where the merged checkpoint of a profile is kept."""
    return cache_root() / "models" / f"{profile}-{source_key(MODEL_SOURCES)}"


def drop_older(target: Path) -> None:
    """Removes the entries of the same profile that other sources made; they are large."""
    profile, _, key = target.name.rpartition("-")
    for other in target.parent.glob(f"{profile}-{'?' * len(key)}"):
        if other != target:
            shutil.rmtree(other, ignore_errors=True)


def ensure_circuit(profile: str, report: Report) -> Path:
    """The circuit of a profile, compiled now if it is not in the cache.

    Raises:
        CircuitError: the circuit compiler failed.
    """
    target = cached_circuit(profile)
    if target.is_dir():
        return target
    report(f"compiling the circuit of machine '{profile}'")
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {target.parent}: {error.strerror}") from None
    command = [sys.executable, "-m", "qgpu_circuit.cli", "emit"]
    command += ["--profile", profile, "-o", str(partial)]
    try:
        done = subprocess.run(command, stdout=STDERR, check=False)
        if done.returncode:
            raise CircuitError(f"qgpu-circuit emit failed for machine '{profile}'")
        if not target.exists():
            partial.rename(target)
        drop_older(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def ensure_base(circuit_folder: Path, report: Report) -> Path:
    """A synthetic base that fits a circuit, written now if it is not in the cache."""
    from qgpu_merge.read_circuit import Circuit
    from qgpu_merge.synthetic_base import SyntheticSizes, write_synthetic_base

    sizes = SyntheticSizes.for_circuit(Circuit(circuit_folder))
    key = hashlib.sha256(f"{sizes}{source_key(('qgpu_merge',))}".encode()).hexdigest()[:12]
    target = cache_root() / "bases" / f"synthetic-{key}"
    if not target.is_dir():
        report("writing a synthetic base checkpoint")
        write_synthetic_base(target, sizes)
    return target
