"""Errors of the merge, each with one readable message."""

from __future__ import annotations

from pathlib import Path

from qgpu_isa.errors import QgpuError


class MergeError(QgpuError):
    """Inputs that cannot be merged."""


class CheckpointError(MergeError):
    """A checkpoint folder that cannot be read, or that is not a Qwen3.5."""


class CircuitError(MergeError):
    """A circuit folder that cannot be read."""


class CheckError(MergeError):
    """Two checkpoints that cannot be compared, or text that cannot be read."""


def already_merged(base: Path) -> MergeError:
    """The error of a base that holds a circuit."""
    return MergeError(f"{base} is already merged with a qgpu circuit")
