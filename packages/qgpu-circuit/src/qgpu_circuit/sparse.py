"""Sparse tensors under construction: entries by index, checked to be bf16."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qgpu_circuit.layers import CircuitError
from qgpu_circuit.numerics import round_bf16


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
        """Sets an entry (once)."""
        self.indices.append(index)
        self.values.append(value)

    def arrays(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Indices int32 [ndim, entries] and values as bf16 bit patterns uint16 [entries].

        Raises:
            CircuitError: bf16 does not hold a value.
        """
        values = np.array(self.values, dtype=np.float64)
        rounded = round_bf16(values)
        wrong = np.flatnonzero(rounded != values)
        if len(wrong):
            first = wrong[0]
            raise CircuitError(
                f"weight {values[first]} at {self.indices[first]} is not a bf16 number"
            )
        index = np.array(self.indices, dtype=np.int32).reshape(-1, len(self.shape)).T
        bits = rounded.view(np.uint32) >> 16
        return np.ascontiguousarray(index), bits.astype(np.uint16)
