"""Errors of lowering: what a kernel needs and the machine, or this compiler, lacks."""

from __future__ import annotations

from typing import Literal

from qgpu_isa import PROFILES, MachineConfig

from qgpu_ptx.diagnostics import UnsupportedError

Limit = Literal["threads", "rom_blocks", "registers", "global_words", "shared_words"]
"""A number of MachineConfig."""

_ADVICE: dict[Limit, str] = {
    "threads": "launch blocks of fewer threads",
    "rom_blocks": "keep loops rolled (#pragma unroll 1) or split the kernel",
    "registers": "keep loops rolled (#pragma unroll 1), keep values in shared memory, "
    "or split the kernel",
    "global_words": "use shorter arrays, or fewer threads if local memory takes the words",
    "shared_words": "use smaller shared arrays",
}


class LoweringError(UnsupportedError):
    """An instruction, legal in PTX, that is not turned into machine operations."""

    code = "P060"


class MachineLimitError(UnsupportedError):
    """The kernel needs more threads, blocks, registers or words than the machine has."""

    code = "P061"


def machine_limit(config: MachineConfig, limit: Limit, message: str) -> MachineLimitError:
    """The error for one number of a machine, with what can be done about it."""
    has = getattr(config, limit)
    larger = [name for name, other in PROFILES.items() if getattr(other, limit) > has]
    machines = f"take a machine that has more ({', '.join(larger)}), or " if larger else ""
    return MachineLimitError(message, hint=machines + _ADVICE[limit])
