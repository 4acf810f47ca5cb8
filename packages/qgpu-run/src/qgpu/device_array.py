"""Arrays that live in the memory of the model's recurrent state."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qgpu.host_data import Array, element_type

if TYPE_CHECKING:
    from qgpu.device import Device


class DeviceArray:
    """An array of integers at a fixed address of a device's global memory.

    What it holds is sent to the model by the next launch, as far as the model's state holds other
    words; after a launch it is read back out of the state. The words are given back when nothing
    refers to the array any more.

    Attributes:
        device: where it lies.
        address: byte address.
        dtype, shape: as numpy's.
    """

    def __init__(self, device: Device, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.type = element_type(dtype, "an array")
        self.device, self.dtype, self.shape = device, dtype, shape
        self.address = device.pool.allocate(self.nbytes)
        weakref.finalize(self, device.pool.free, self.address).atexit = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray({self.get()!r}, address={self.address})"

    def get(self) -> Array:
        """A numpy array with the contents."""
        return self.device.read(self.address, self.dtype, self.shape)

    def set(self, values: Array | Sequence[int] | int) -> None:
        """Replaces the contents; values are broadcast to the shape and must fit the dtype.

        Raises:
            OverflowError, ValueError: they do not.
        """
        whole = np.empty(self.shape, dtype=self.dtype)
        whole[...] = values
        self.device.write(self.address, whole)


def asarray(
    values: Array | Sequence[int], dtype: Any = None, *, device: Device | None = None
) -> DeviceArray:
    """A device array with the contents of an array of integers, or of a list (then int32).

    Raises:
        LaunchError: the elements are not integers.
        MachineLimitError: there is no place for it.
    """
    from qgpu.device import current_device

    if dtype is None and not isinstance(values, np.ndarray):
        dtype = np.int32
    host = np.asarray(values, dtype=dtype)
    made = DeviceArray(device or current_device(), host.dtype, host.shape)
    made.set(host)
    return made


def zeros(
    shape: int | Sequence[int], dtype: Any = np.int32, *, device: Device | None = None
) -> DeviceArray:
    """A device array of zeros. Raises as `asarray` does."""
    return asarray(np.zeros(shape, dtype=dtype), device=device)
