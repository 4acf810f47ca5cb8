"""Errors of lowering: what a kernel needs and the machine, or this compiler, lacks."""

from __future__ import annotations

from qgpu_ptx.diagnostics import QgpuPtxError


class LoweringError(QgpuPtxError):
    """An instruction, legal in PTX, that is not turned into machine operations."""

    code = "P060"


class MachineLimitError(QgpuPtxError):
    """The kernel needs more threads, blocks, registers or words than the machine has."""

    code = "P061"
