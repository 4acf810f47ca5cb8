"""Where the arrays of a launch lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from qgpu_ptx.diagnostics import LaunchError
from qgpu_run.launch_request import OutputArray

from qgpu.arguments import BoundArgument
from qgpu.device_array import DeviceArray
from qgpu.host_data import Array, element_type
from qgpu.memory_pool import MemoryPool


def place_arguments(
    bound: Sequence[BoundArgument], pool: MemoryPool, borrowed: list[int]
) -> list[OutputArray | int]:
    """For each argument the number, or the array with its address.

    Args:
        bound: the arguments.
        pool: where numpy arrays get a place; one that is given twice gets one.
        borrowed: takes the addresses of these places.

    Raises:
        LaunchError: two numpy arrays overlap.
        MachineLimitError: there is no place.
    """
    placed: list[OutputArray | int] = []
    hosts: list[tuple[Array, int]] = []
    for argument in bound:
        value = argument.value
        if isinstance(value, int):
            placed.append(value)
            continue
        if isinstance(value, DeviceArray):
            address = value.address
        else:
            address = _host_address(argument.name, value, pool, hosts, borrowed)
        type_ = element_type(value.dtype, f"'{argument.name}'")
        placed.append(OutputArray(argument.name, type_, address, value.size))
    return placed


def _host_address(
    name: str,
    array: Array,
    pool: MemoryPool,
    hosts: list[tuple[Array, int]],
    borrowed: list[int],
) -> int:
    for other, address in hosts:
        if other is array:
            return address
        if np.shares_memory(other, array):
            raise LaunchError(f"'{name}' overlaps another array of the launch")
    address = pool.allocate(array.nbytes)
    borrowed.append(address)
    hosts.append((array, address))
    return address
