"""The tensors of a merged checkpoint, mapped from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from qgpu_isa.weight_files import StoredTensor, stored_tensors

from qgpu_run.engines.sparse.arrays import Array
from qgpu_run.engines.sparse.pack_layers import Rows
from qgpu_run.errors import ModelError

ROWS_AT_A_TIME = 8192
NUMBERS_AT_A_TIME = 1 << 22

DTYPES: dict[str, type[np.unsignedinteger[Any]]] = {"BF16": np.uint16, "F32": np.uint32}
"""Of the bit patterns of each stored dtype."""

MAGNITUDE = {2: 0x7FFF, 4: 0x7FFFFFFF}
INFINITE = {2: 0x7F80, 4: 0x7F800000}
"""By bytes of a number: all bits but the sign, and those of infinity. NaNs are above it."""


class CheckpointReader:
    """The tensors of a folder of safetensors, as float32 or by their entries.

    Whatever it gives is finite.

    Raises:
        ModelError: the files are missing or damaged; so do all methods, and where a number is not
            finite.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tensors = stored_tensors(folder, ModelError)

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    @property
    def prefix(self) -> str:
        """What stands in front of the language model's names."""
        nested = any(name.startswith("model.language_model.") for name in self.tensors)
        return "model.language_model." if nested else "model."

    def expect(self, name: str, *shape: int) -> None:
        """That a tensor is there, and has a shape."""
        found = self._header(name).shape
        if found != shape:
            raise ModelError(
                f"{self.folder}: {name} has shape {list(found)}, the config says {list(shape)}"
            )

    def _header(self, name: str) -> StoredTensor:
        if name not in self.tensors:
            raise ModelError(f"{self.folder} has no tensor {name}")
        return self.tensors[name]

    def _stored(self, name: str) -> Array:
        """The tensor's elements as bit patterns, uint16 or uint32, mapped from disk."""
        tensor = self._header(name)
        if tensor.dtype not in DTYPES:
            raise ModelError(f"{tensor.path}: {name} is {tensor.dtype}; it must be BF16 or F32")
        return np.memmap(tensor.path, DTYPES[tensor.dtype], "r", tensor.begin, tensor.shape)

    def check_finite(self, name: str) -> None:
        """That all elements of a tensor are finite."""
        flat = self._stored(name).reshape(-1)
        for first in range(0, len(flat), NUMBERS_AT_A_TIME):
            self._check_finite(name, np.asarray(flat[first : first + NUMBERS_AT_A_TIME]))

    def _check_finite(self, name: str, bits: Array) -> None:
        size = bits.dtype.itemsize
        if bits.size and int((bits & bits.dtype.type(MAGNITUDE[size])).max()) >= INFINITE[size]:
            raise ModelError(
                f"{self.folder}: {name} holds a number that is not finite, with which any token "
                "could be written; build the model again, from an undamaged base"
            )

    def dense(self, name: str, first_row: int = 0, last_row: int | None = None) -> Array:
        """Rows of a tensor, or all, float32."""
        bits = np.asarray(self._stored(name)[first_row:last_row])
        self._check_finite(name, bits)
        return _to_float(bits)

    def columns(self, name: str, last_row: int) -> tuple[Array, Array]:
        """What the rows of a matrix before one hold, column by column.

        Returns:
            which columns hold one number in all rows; the largest magnitude in each, float32.
        """
        stored = self._stored(name)
        sign = stored.dtype.type(MAGNITUDE[stored.dtype.itemsize])
        alike = np.ones(stored.shape[1], dtype=bool)
        largest = np.zeros(stored.shape[1], dtype=stored.dtype)
        for first in range(0, last_row, ROWS_AT_A_TIME):
            rows = np.asarray(stored[first : min(first + ROWS_AT_A_TIME, last_row)])
            alike &= (rows == stored[0]).all(axis=0)
            # Without the sign, larger bit patterns are larger numbers.
            np.maximum(largest, (rows & sign).max(axis=0), out=largest)
        self._check_finite(name, largest)
        return alike, _to_float(largest)

    def has_rows(self, name: str, rows: Array) -> bool:
        """Whether any of the given rows of a matrix has an entry."""
        return bool((_to_float(np.asarray(self._stored(name)[rows])) != 0).any())

    def entries(self, name: str, first_row: int = 0) -> Rows:
        """The entries of a matrix from a row on; it must be BF16."""
        bits = self._stored(name)[first_row:]
        if bits.dtype != np.uint16:
            raise ModelError(f"{self.folder}: {name} is not BF16, as a circuit's matrices are")
        flat = np.ascontiguousarray(bits).reshape(-1)
        # Whole words first: most are zero.
        words = flat[: len(flat) // 4 * 4].view(np.uint64)
        near = np.flatnonzero(words)
        at = (near[:, None] * 4 + np.arange(4)).reshape(-1)
        rest = np.arange(len(words) * 4, len(flat))
        at = np.concatenate([at, rest])
        at = at[flat[at] & 0x7FFF != 0]
        rows, columns = np.divmod(at, bits.shape[1])
        self._check_finite(name, flat[at])
        return Rows(rows, columns, _to_float(flat[at]))


def _to_float(bits: Array) -> Array:
    if bits.dtype == np.uint32:
        return bits.view(np.float32)
    result: Array = (bits.astype(np.uint32) << 16).view(np.float32)
    return result
