"""Arrays that live in the memory of the model's recurrent state."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from qgpu_ptx.memory_layout import WORD_BYTES

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
        self._base: DeviceArray | None = None
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

    def __getitem__(self, part: slice) -> DeviceArray:
        """A view of neighbouring elements of a one-dimensional array, which begins at a word."""
        if len(self.shape) != 1:
            raise IndexError("only one-dimensional arrays have views")
        first, last, step = part.indices(self.size)
        if step != 1 or first * self.dtype.itemsize % WORD_BYTES:
            raise IndexError("a view takes neighbouring elements from the start of a word on")
        view = DeviceArray.__new__(DeviceArray)
        view.type, view.device, view.dtype = self.type, self.device, self.dtype
        view.shape = (max(0, last - first),)
        view.address = self.address + first * self.dtype.itemsize
        view._base = self
        return view

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
