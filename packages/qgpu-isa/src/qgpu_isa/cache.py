"""Where the commands keep what they compile: one folder, entries keyed by what made them.

An entry's name ends in a hash over the sources that decide its content, so a new version of the
machine never meets an old circuit or checkpoint.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path

CIRCUIT_SOURCES = ("qgpu_isa", "qgpu_circuit")


def cache_root() -> Path:
    """The cache folder: $QGPU_CACHE, or ~/.cache/qgpu."""
    chosen = os.environ.get("QGPU_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "qgpu"


def source_key(packages: tuple[str, ...]) -> str:
    """A short hash over the Python sources of installed packages."""
    digest = hashlib.sha256()
    for package in packages:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{package}/{path.relative_to(root).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def cached_circuit(profile: str) -> Path:
    """Where the circuit of a profile is kept."""
    return cache_root() / "circuits" / f"{profile}-{source_key(CIRCUIT_SOURCES)}"
