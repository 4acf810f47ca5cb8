"""The tensors of a merged checkpoint, mapped from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from qgpu_run.engines.sparse.arrays import Array
from qgpu_run.engines.sparse.pack_layers import Rows
from qgpu_run.errors import ModelError

ROWS_AT_A_TIME = 8192


class CheckpointReader:
    """The tensors of a folder of safetensors, as float32 or by their entries."""

    def __init__(self, folder: Path) -> None:
        index = folder / "model.safetensors.index.json"
        single = folder / "model.safetensors"
        self._headers: dict[str, tuple[Path, int, dict[str, Any]]] = {}
        try:
            if index.exists():
                names = set(json.loads(index.read_text())["weight_map"].values())
                files = [folder / name for name in sorted(names)]
            else:
                files = [single]
            for file in files:
                self._read_header(file)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"{folder} cannot be read: {error}") from None
        self.folder = folder

    def _read_header(self, file: Path) -> None:
        with file.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(size))
        for name, entry in header.items():
            if name != "__metadata__":
                self._headers[name] = (file, 8 + size, entry)

    def __contains__(self, name: str) -> bool:
        return name in self._headers

    @property
    def prefix(self) -> str:
        """What stands in front of the language model's names."""
        nested = any(name.startswith("model.language_model.") for name in self._headers)
        return "model.language_model." if nested else "model."

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor."""
        return tuple(self._header(name)[2]["shape"])

    def _header(self, name: str) -> tuple[Path, int, dict[str, Any]]:
        if name not in self._headers:
            raise ModelError(f"{self.folder} has no tensor {name}")
        return self._headers[name]

    def _stored(self, name: str) -> Array:
        """The tensor's elements as bit patterns, uint16 or uint32, mapped from disk."""
        file, base, entry = self._header(name)
        dtypes = {"BF16": np.uint16, "F32": np.uint32}
        if entry["dtype"] not in dtypes:
            raise ModelError(f"{file}: {name} is {entry['dtype']}; it must be BF16 or F32")
        shape = tuple(entry["shape"])
        begin, end = entry["data_offsets"]
        if file.stat().st_size < base + end:
            raise ModelError(f"{file} is truncated")
        return np.memmap(file, dtypes[entry["dtype"]], "r", base + begin, shape)

    def dense(self, name: str, first_row: int = 0, last_row: int | None = None) -> Array:
        """Rows of a tensor, or all, float32."""
        return _to_float(np.asarray(self._stored(name)[first_row:last_row]))

    def columns(self, name: str, last_row: int) -> tuple[Array, Array]:
        """What the rows of a matrix before one hold, column by column.

        Returns:
            which columns hold one number in all rows; the largest magnitude in each, float32.
        """
        stored = self._stored(name)
        sign = np.array(0x7FFF if stored.dtype == np.uint16 else 0x7FFFFFFF, stored.dtype)
        alike = np.ones(stored.shape[1], dtype=bool)
        largest = np.zeros(stored.shape[1], dtype=stored.dtype)
        for first in range(0, last_row, ROWS_AT_A_TIME):
            rows = np.asarray(stored[first : min(first + ROWS_AT_A_TIME, last_row)])
            alike &= (rows == stored[0]).all(axis=0)
            # Without the sign, larger bit patterns are larger numbers.
            np.maximum(largest, (rows & sign).max(axis=0), out=largest)
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
        return Rows(rows, columns, _to_float(flat[at]))


def _to_float(bits: Array) -> Array:
    if bits.dtype == np.uint32:
        return bits.view(np.float32)
    result: Array = (bits.astype(np.uint32) << 16).view(np.float32)
    return result
