"""PTX to a launch request, through qgpu-ptx."""

from __future__ import annotations

from collections.abc import Collection

from qgpu_isa.machine_config import MachineConfig
from qgpu_ptx.baseline_program import baseline_for_launch
from qgpu_ptx.diagnostics import QgpuPtxError
from qgpu_ptx.launch_spec import LaunchSpec
from qgpu_ptx.lower import lower_launch
from qgpu_ptx.ptx_ast import Module

from qgpu_run.launch_request import LaunchRequest, OutputArray


def lower_kernel(
    module: Module, spec: LaunchSpec, config: MachineConfig, *, without: Collection[str] = ()
) -> LaunchRequest:
    """Lowers one entry of a PTX module for a machine and lays out its arguments in memory.

    `without` names passes to leave out, see `qgpu_ptx.passes.SWITCHES`.

    Raises:
        QgpuPtxError: the PTX is wrong, the arguments do not fit it, or it does not fit the
            machine.
    """
    placed = lower_launch(module, spec, config, without=without)
    placed_arrays = placed.layout.arrays
    arrays = [OutputArray(a.name, a.type, a.address, len(a.values)) for a in placed_arrays]
    outputs = [array for array, a in zip(arrays, placed_arrays, strict=True) if a.output]
    return LaunchRequest(
        placed.launch(),
        tuple(outputs),
        spec.expected,
        spec.kernel,
        tuple(arrays),
        placed.kernel.private,
        lambda: _baseline(module, spec),
    )


def _baseline(module: Module, spec: LaunchSpec) -> int | None:
    """The launch's tokens under the naive lowering; None if the PTX does not run to its end."""
    try:
        return baseline_for_launch(module, spec)
    except QgpuPtxError:
        return None
