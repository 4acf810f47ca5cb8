"""Python arguments of a launch, checked against the kernel's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from qgpu_ptx.diagnostics import LaunchError
from qgpu_ptx.kernel_parameters import Parameter
from qgpu_ptx.launch_shape import Dim3
from qgpu_ptx.ptx_ast import Function
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES
from qgpu_ptx.ptx_interpreter.symbols import layout

from qgpu.device_array import DeviceArray
from qgpu.host_data import Array, element_type

POINTER_BYTES = 8


@dataclass(frozen=True)
class BoundArgument:
    """An argument and the parameter it is for.

    Attributes:
        name: the parameter's, as far as it is known.
        value: an array, or the bits of a number.
    """

    name: str
    value: DeviceArray | Array | int


def bind_arguments(
    entry: Function, parameters: Sequence[Parameter] | None, args: Sequence[Any]
) -> list[BoundArgument]:
    """Checks number and types of arguments.

    Args:
        entry: the kernel.
        parameters: what is known of its parameters from the CUDA source.
        args: numpy arrays, device arrays, Python and numpy integers.

    Raises:
        LaunchError: naming the argument that does not fit.
    """
    if len(args) != len(entry.parameters):
        raise LaunchError(
            f"kernel {entry.name} takes {len(entry.parameters)} arguments, {len(args)} given"
        )
    bound = []
    for number, (value, declared) in enumerate(zip(args, entry.parameters, strict=True)):
        known = parameters[number] if parameters is not None else None
        name = known.name if known is not None else f"argument {number}"
        size = layout(declared, 0)[1]
        if isinstance(value, DeviceArray | np.ndarray):
            _check_array(name, value, known, size)
            bound.append(BoundArgument(name, value))
        else:
            bound.append(BoundArgument(name, _number(name, value, known, size)))
    return bound


def _check_array(name: str, value: DeviceArray | Array, known: Parameter | None, size: int) -> None:
    type_ = element_type(value.dtype, f"'{name}'")
    if size != POINTER_BYTES or (known is not None and known.is_pointer is False):
        raise LaunchError(f"'{name}' is one number, an array was given")
    if known is not None and known.type and SCALAR_TYPES[known.type].bits != int(type_[1:]):
        raise LaunchError(f"'{name}' points to {known.type}, an array of {value.dtype} was given")


def _number(name: str, value: Any, known: Parameter | None, size: int) -> int:
    if not isinstance(value, int | np.integer | np.bool_):
        raise LaunchError(
            f"'{name}' is a {type(value).__name__}; "
            "arguments are integers, integer numpy arrays and device arrays"
        )
    if known is not None and known.is_pointer:
        raise LaunchError(f"'{name}' is a pointer, the number {value} was given")
    if isinstance(value, np.integer) and value.dtype.itemsize != size:
        raise LaunchError(f"'{name}' has {size} bytes, {value.dtype} was given")
    bits = 8 * size
    low, high = -(1 << (bits - 1)), (1 << bits) - 1
    if known is not None and known.type:
        low, high = SCALAR_TYPES[known.type].range
    if not low <= int(value) <= high:
        raise LaunchError(f"'{name}' is {value}, outside {low} to {high}")
    return int(value) & ((1 << bits) - 1)


def launch_sizes(sizes: int | Sequence[int], what: str) -> Dim3:
    """Grid or block sizes, filled up with 1.

    Raises:
        LaunchError: they are not one to three positive numbers.
    """
    numbers: list[Any] = [sizes] if isinstance(sizes, int | np.integer) else list(sizes)
    if not 1 <= len(numbers) <= 3 or any(
        not isinstance(n, int | np.integer) or n < 1 for n in numbers
    ):
        raise LaunchError(f"{what} is {sizes!r}: it takes one to three positive numbers")
    x, y, z = [*map(int, numbers), 1, 1][:3]
    return (x, y, z)
