"""Puts the matrices of all layers side by side, without the rows and columns that stay 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qgpu_run.engines.sparse.arrays import (
    BETA,
    DOWN,
    GATE,
    HEAD_FIELDS,
    MATRICES,
    OUT,
    QKV,
    UP,
    Array,
    Z,
)


@dataclass(frozen=True)
class Rows:
    """The entries of a matrix that are not 0, by row.

    Attributes:
        rows, columns: int64 [entries], sorted by row, then column.
        values: float32 [entries].
    """

    rows: Array
    columns: Array
    values: Array

    def take(self, keep: Array) -> Rows:
        """The entries where `keep` is true."""
        return Rows(self.rows[keep], self.columns[keep], self.values[keep])


@dataclass(frozen=True)
class Layer:
    """A layer as it is in the checkpoint, on the dimensions that can be other than 0.

    Attributes:
        matrices: in the order of `arrays.QKV` to `arrays.DOWN`.
        taps: [rows of QKV, 4] of the convolution.
        norm: [value columns] weight of the heads' norm.
    """

    matrices: tuple[Rows, ...]
    taps: Array
    norm: Array


@dataclass(frozen=True)
class HeadShape:
    """Heads of a layer, and key rows and value columns of each."""

    heads: int
    rows: int
    columns: int


def pack_layers(layers: list[Layer], shape: HeadShape) -> tuple[dict[str, Array], int, int]:
    """The fields of `Weights` that hold matrices and heads.

    Returns:
        the fields, how many numbers the state of a stream has, and how many rows a window.
    """
    packer = _Packer(shape)
    for layer in layers:
        packer.add(layer)
    return packer.fields(), packer.numbers, packer.windows


class _Packer:
    def __init__(self, shape: HeadShape) -> None:
        self.shape = shape
        self.numbers = self.windows = self.entries = 0
        self.matrix, self.head_start = [0], [0]
        self.heads: list[list[int]] = []
        names = ("row", "start", "column", "value", "slot", "number", "norm", "taps", "window")
        self.lists: dict[str, list[Array]] = {name: [] for name in names}

    def fields(self) -> dict[str, Array]:
        joined = {name: np.concatenate(parts) for name, parts in self.lists.items()}
        joined["start"] = np.append(joined["start"], self.entries)
        return joined | {
            "matrix": np.array(self.matrix),
            "head_start": np.array(self.head_start),
            "heads": np.array(self.heads, dtype=np.int64).reshape(-1, HEAD_FIELDS),
        }

    def add(self, layer: Layer) -> None:
        """Appends a layer."""
        shape, parts = self.shape, list(layer.matrices)
        read = np.unique(parts[OUT].columns // shape.columns)
        parts[QKV] = parts[QKV].take(np.isin(self._head_of(parts[QKV].rows), read))
        # A column of a state that no value row writes stays 0, and so does what is gated with it.
        first_value = 2 * shape.heads * shape.rows
        written = parts[QKV].rows - first_value
        parts[Z] = parts[Z].take(np.isin(parts[Z].rows, written))
        parts[BETA] = parts[BETA].take(np.isin(parts[BETA].rows, read))
        # A neuron needs both halves.
        both = np.intersect1d(parts[GATE].rows, parts[UP].rows)
        for kind in (GATE, UP):
            parts[kind] = parts[kind].take(np.isin(parts[kind].rows, both))
        parts[OUT] = _renumber_columns(parts[OUT], np.unique(parts[Z].rows))
        parts[DOWN] = _renumber_columns(parts[DOWN], both)
        rows = [np.unique(part.rows) for part in parts]
        numbers = self._number_of(rows[QKV])
        slots = self._add_heads(read, rows[QKV], numbers, rows[Z])
        for kind in range(MATRICES):
            self._add_matrix(kind, parts[kind], rows[kind], read)
            self._add_row_facts(kind, rows[kind], layer, numbers, slots.get(kind))

    def _head_of(self, rows: Array) -> Array:
        """The head of each row of QKV: queries of all heads, then keys, then values."""
        shape = self.shape
        keys = shape.heads * shape.rows
        of_key = rows % keys // shape.rows
        return np.where(rows < 2 * keys, of_key, (rows - 2 * keys) // shape.columns)

    def _number_of(self, rows: Array) -> Array:
        """The row or column of a head's state that each row of QKV belongs to."""
        shape = self.shape
        keys = shape.heads * shape.rows
        return np.where(rows < 2 * keys, rows % shape.rows, (rows - 2 * keys) % shape.columns)

    def _add_heads(self, read: Array, qkv: Array, numbers: Array, z: Array) -> dict[int, Array]:
        """Lays out the states of a layer's heads; returns `slot` of QKV and of Z."""
        shape = self.shape
        keys = shape.heads * shape.rows
        slots = np.zeros(len(qkv), dtype=np.int64)
        z_slots = np.zeros(len(z), dtype=np.int64)
        for head in read.tolist():
            query = _between(qkv, head * shape.rows, shape.rows)
            key = _between(qkv, keys + head * shape.rows, shape.rows)
            value = _between(qkv, 2 * keys + head * shape.columns, shape.columns)
            gates = _between(z, head * shape.columns, shape.columns)
            state_rows = np.union1d(numbers[query], numbers[key])
            for part in (query, key):
                slots[part] = np.searchsorted(state_rows, numbers[part])
            slots[value] = np.arange(value.stop - value.start)
            z_slots[gates] = np.searchsorted(numbers[value], z[gates] % shape.columns)
            bounds = [b for part in (query, key, value, gates) for b in (part.start, part.stop)]
            self.heads.append([head, *bounds, self.numbers, len(state_rows)])
            self.numbers += len(state_rows) * (value.stop - value.start)
        self.head_start.append(len(self.heads))
        return {QKV: slots, Z: z_slots}

    def _add_matrix(self, kind: int, part: Rows, rows: Array, read: Array) -> None:
        targets = {OUT: rows, DOWN: rows, BETA: np.searchsorted(read, rows)}
        self.lists["row"].append(targets.get(kind, np.arange(len(rows))))
        self.lists["start"].append(np.searchsorted(part.rows, rows) + self.entries)
        self.lists["column"].append(part.columns.astype(np.int32))
        self.lists["value"].append(part.values)
        self.entries += len(part.rows)
        self.matrix.append(self.matrix[-1] + len(rows))

    def _add_row_facts(
        self, kind: int, rows: Array, layer: Layer, numbers: Array, slots: Array | None
    ) -> None:
        """What rows of QKV and of Z have beside their entries."""
        count = len(rows)
        none = np.zeros(count, dtype=np.int64)
        taps = layer.taps[rows] if kind == QKV else np.zeros((count, 4), np.float32)
        looks = taps[:, :3].any(axis=1)
        norm = layer.norm[rows % self.shape.columns] if kind == Z else none
        self.lists["slot"].append(none if slots is None else slots)
        self.lists["number"].append(numbers if kind == QKV else none)
        self.lists["norm"].append(norm.astype(np.float32))
        self.lists["taps"].append(taps)
        self.lists["window"].append(np.where(looks, np.cumsum(looks) - 1 + self.windows, -1))
        self.windows += int(looks.sum())


def _renumber_columns(part: Rows, kept: Array) -> Rows:
    """Columns as their positions in `kept`, without the others."""
    part = part.take(np.isin(part.columns, kept))
    return Rows(part.rows, np.searchsorted(kept, part.columns), part.values)


def _between(rows: Array, first: int, count: int) -> slice:
    """Where the rows numbered first to first + count - 1 lie among sorted rows."""
    low, high = np.searchsorted(rows, (first, first + count)).tolist()
    return slice(low, high)
