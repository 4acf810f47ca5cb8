"""Where the commands keep what they compile: one folder, entries keyed by what made them.

An entry's name ends in a hash over the sources that decide its content, so a new version of the
machine never meets an old circuit or checkpoint. Several versions may be in use at a time, so an
entry is removed only when nobody has used it for a while; its folder's time says when.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from qgpu_isa.new_folder import discard, remove_abandoned

CIRCUIT_SOURCES = ("qgpu_isa", "qgpu_circuit")

KEPT_SECONDS = 24 * 3600
"""An entry of other sources goes when it was not used for this long."""

KEPT_SECONDS_ON_A_FULL_DISK = 3600
"""The same where the disk lacks room; long enough to load an entry that was found."""

_KEY_DIGITS = 12


def cache_root() -> Path:
    """The cache folder: $QGPU_CACHE, or ~/.cache/qgpu."""
    chosen = os.environ.get("QGPU_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "qgpu"


def source_key(packages: tuple[str, ...]) -> str:
    """A short hash over the Python sources of installed packages."""
    pieces: list[bytes] = []
    for package in packages:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            pieces += (
                f"{package}/{path.relative_to(root).as_posix()}\0".encode(),
                path.read_bytes(),
            )
    return entry_key(b"".join(pieces))


def entry_key(content: bytes) -> str:
    """A short hash for the name of an entry."""
    return hashlib.sha256(content).hexdigest()[:_KEY_DIGITS]


def cached_circuit(profile: str) -> Path:
    """Where the circuit of a profile is kept."""
    return cache_root() / "circuits" / f"{profile}-{source_key(CIRCUIT_SOURCES)}"


def find_entry(entry: Path) -> bool:
    """Whether an entry is there; if so, it counts as used. Tidies the folder it is in."""
    found = entry.is_dir()
    if found:
        # A cache that cannot be written is read all the same.
        with suppress(OSError):
            os.utime(entry)
    tidy(entry)
    return found


def tidy(entry: Path, needed: int = 0) -> None:
    """Removes what killed builds left beside an entry, and versions of it that are out of use.

    Args:
        entry: the entry that stays.
        needed: bytes that are about to be written.
    """
    remove_abandoned(entry.parent)
    name, _, _ = entry.name.rpartition("-")
    others = [p for p in entry.parent.glob(f"{name}-{'?' * _KEY_DIGITS}") if p != entry]
    now = time.time()
    with suppress(OSError):
        for other in sorted(others, key=_used):
            idle = now - _used(other)
            full = shutil.disk_usage(entry.parent).free < needed
            if idle > KEPT_SECONDS or (full and idle > KEPT_SECONDS_ON_A_FULL_DISK):
                discard(other)


def _used(entry: Path) -> float:
    return entry.stat().st_mtime
