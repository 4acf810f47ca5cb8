"""Keeps the weights that were read, so that the next start need not search gigabytes of zeros."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import numpy as np
from qgpu_isa.cache import cache_root, source_key
from qgpu_isa.weight_files import SUFFIX

from qgpu_run.engines.sparse.arrays import Weights
from qgpu_run.engines.sparse.read_weights import read_weights
from qgpu_run.load_model import ModelManifest


def cached_weights(manifest: ModelManifest) -> Weights:
    """The weights of a checkpoint, from the cache if its files are what they were."""
    path = cache_root() / "sparse" / f"{_identity(manifest.path)}.npz"
    try:
        with np.load(path) as stored:
            return Weights(**{name: stored[name] for name in Weights._fields})
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        weights = read_weights(manifest)
        _keep(path, weights)
        return weights


def _identity(folder: Path) -> str:
    """A hash over config and index, the files' sizes and times, and the code that reads them."""
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    digest.update(source_key(("qgpu_isa", "qgpu_run")).encode())
    for file in sorted(folder.glob(f"*{SUFFIX}*")):
        state = file.stat()
        digest.update(f"{file.resolve()} {state.st_size} {state.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:24]


def _keep(path: Path, weights: Weights) -> None:
    """Writes beside and renames; a cache that cannot be written is done without."""
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            np.savez(file, **weights._asdict())
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
