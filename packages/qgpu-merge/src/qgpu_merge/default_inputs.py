"""What a bare `qgpu-merge build` merges, kept in the user's cache.

Entries are keyed by the profile and by the sources that decide their content, so a new version of
the machine never meets an old checkpoint.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from qgpu_isa.cache import (
    CIRCUIT_SOURCES,
    cache_root,
    cached_circuit,
    entry_key,
    find_entry,
    source_key,
)

from qgpu_merge.errors import CircuitError

MODEL_SOURCES = (*CIRCUIT_SOURCES, "qgpu_merge")

Report = Callable[[str], None]


def cached_model(profile: str) -> Path:
    """Where the merged checkpoint of a profile is kept."""
    return cache_root() / "models" / f"{profile}-{source_key(MODEL_SOURCES)}"


def ensure_circuit(
    profile: str, report: Report, base: Path | None = None, *, may_pad: bool = True
) -> Path:
    """The circuit of a profile, compiled now if it is not in the cache.

    Args:
        profile: the machine; `fit` is the largest that the base has room for.
        report: called with what takes time.
        base: the checkpoint folder whose shape it takes; None for the profile's own shape.
        may_pad: whether the circuit may be larger than the base has room for.

    Raises:
        CircuitError: the circuit compiler failed; its own message has been shown.
    """
    if base is None:
        target = cached_circuit(profile)
        if find_entry(target):
            return target
        report(f"compiling the circuit of machine '{profile}'")
    # In a process of its own: the netlist's memory is free again before the merge begins.
    command = [sys.executable, "-m", "qgpu_circuit.cli", "emit", "--profile", profile, "--json"]
    command += [] if base is None else ["--base", str(base), "--pad" if may_pad else "--no-pad"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    try:
        facts = json.loads(done.stdout)
        path, layers, digest = facts["path"], facts["shape"]["num_layers"], facts["digest"]
    except (ValueError, KeyError, TypeError):
        raise CircuitError(
            "the base was not merged, since there is no circuit for it: see what "
            f"`qgpu-circuit emit` says above (status {done.returncode})"
        ) from None
    report(f"{path}: {layers} layers, digest {digest[:16]}")
    return Path(path)


def ensure_base(circuit_folder: Path, report: Report) -> Path:
    """A synthetic base that fits a circuit, written now if it is not in the cache."""
    from qgpu_merge.read_circuit import Circuit
    from qgpu_merge.synthetic_base import SyntheticSizes, write_synthetic_base

    sizes = SyntheticSizes.for_circuit(Circuit(circuit_folder))
    key = entry_key(f"{sizes}{source_key(('qgpu_merge',))}".encode())
    target = cache_root() / "bases" / f"synthetic-{key}"
    if not find_entry(target):
        report("writing a synthetic base checkpoint")
        write_synthetic_base(target, sizes, shared=True)
    return target
