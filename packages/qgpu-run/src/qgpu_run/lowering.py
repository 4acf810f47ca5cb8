"""PTX to a launch request, through qgpu-ptx."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qgpu_isa.machine_config import MachineConfig

from qgpu_run.errors import RequestError
from qgpu_run.launch_request import LaunchRequest

if TYPE_CHECKING:
    from qgpu_ptx.launch_spec import LaunchSpec


def lower_kernel(
    text: str, filename: str, spec: LaunchSpec, config: MachineConfig
) -> LaunchRequest:
    """Lowers one entry of PTX text for a machine and lays out its arguments in memory.

    Raises:
        QgpuPtxError: the PTX is wrong, or does not fit the machine.
    """
    raise RequestError("this version of qgpu-ptx does not lower kernels")
