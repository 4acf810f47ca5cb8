"""Sparse tensors under construction: entries by index, checked to be bf16."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qgpu_circuit.layers import CircuitError
from qgpu_circuit.numerics import is_bf16


@dataclass
class SparseTensor:
    """A tensor of which few entries differ from `fill`.

    Attributes:
        shape: its dense shape.
        fill: value of entries that were not set.
    """

    shape: tuple[int, ...]
    fill: float = 0.0
    indices: list[tuple[int, ...]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def set(self, index: tuple[int, ...], value: float) -> None:
        """Sets an entry (once).

        Raises:
            CircuitError: bf16 does not hold the value.
        """
        if not is_bf16(value):
            raise CircuitError(f"weight {value} at {index} is not a bf16 number")
        self.indices.append(index)
        self.values.append(value)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices int32 [ndim, entries] and values as bf16 bit patterns uint16 [entries]."""
        index = np.array(self.indices, dtype=np.int32).reshape(-1, len(self.shape)).T
        bits = np.array(self.values, dtype=np.float32).view(np.uint32) >> 16
        return np.ascontiguousarray(index), bits.astype(np.uint16)

    def dense(self) -> np.ndarray:
        """The tensor as float32."""
        out = np.full(self.shape, self.fill, dtype=np.float32)
        if self.indices:
            out[tuple(np.array(self.indices).T)] = self.values
        return out
