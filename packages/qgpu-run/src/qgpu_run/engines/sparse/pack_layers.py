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

PLAIN = np.array([0, 0, 0, 1], dtype=np.float32)
"""Taps of a convolution that changes nothing."""


LISTS = (
    "column", "start", "row", "value", "target", "slot", "number", "norm", "look", "taps",
)  # fmt: skip
"""Fields of `Weights` that grow matrix by matrix."""


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
    """Key heads of a layer, key rows and value columns of a head, value heads to a key head."""

    heads: int
    rows: int
    columns: int
    values_per_key: int = 1


def pack_layers(layers: list[Layer], shape: HeadShape) -> tuple[dict[str, Array], int]:
    """The fields of `Weights` that hold matrices and heads.

    Returns:
        the fields, and how many numbers the state of a stream has.
    """
    packer = _Packer(shape)
    for layer in layers:
        packer.add(layer)
    return packer.fields(), packer.numbers


class _Packer:
    def __init__(self, shape: HeadShape) -> None:
        self.shape = shape
        self.numbers = self.entries = 0
        self.matrix, self.head_start, self.look_start = [0], [0], [0]
        self.heads: list[list[int]] = []
        self.rows = [0]
        self.lists: dict[str, list[Array]] = {name: [] for name in LISTS}

    def fields(self) -> dict[str, Array]:
        joined = {name: np.concatenate(parts) for name, parts in self.lists.items()}
        joined["start"] = np.append(joined["start"], self.entries)
        return joined | {
            "matrix": np.array(self.matrix),
            "rows": np.array(self.rows),
            "head_start": np.array(self.head_start),
            "look_start": np.array(self.look_start),
            "heads": np.array(self.heads, dtype=np.int64).reshape(-1, HEAD_FIELDS),
        }

    def add(self, layer: Layer) -> None:
        """Appends a layer."""
        shape, parts = self.shape, list(layer.matrices)
        read = np.unique(parts[OUT].columns // shape.columns)
        parts[QKV] = parts[QKV].take(self._is_read(parts[QKV].rows, read))
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

    def _is_read(self, rows: Array, read: Array) -> Array:
        """Which rows of QKV (queries of all key heads, keys, then values) the heads `read` need."""
        shape = self.shape
        keys = shape.heads * shape.rows
        of_key = np.isin(rows % keys // shape.rows, read // shape.values_per_key)
        of_value = np.isin((rows - 2 * keys) // shape.columns, read)
        needed: Array = np.where(rows < 2 * keys, of_key, of_value)
        return needed

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
            first_row = head // shape.values_per_key * shape.rows
            query = _between(qkv, first_row, shape.rows)
            key = _between(qkv, keys + first_row, shape.rows)
            value = _between(qkv, 2 * keys + head * shape.columns, shape.columns)
            gates = _between(z, head * shape.columns, shape.columns)
            state_rows = np.union1d(numbers[query], numbers[key])
            for part in (query, key):
                slots[part] = np.searchsorted(state_rows, numbers[part])
            z_slots[gates] = np.searchsorted(numbers[value], z[gates] % shape.columns)
            bounds = [b for part in (query, key, value, gates) for b in (part.start, part.stop)]
            self.heads.append([head, *bounds, self.numbers, len(state_rows)])
            self.numbers += len(state_rows) * (value.stop - value.start)
        self.head_start.append(len(self.heads))
        return {QKV: slots, Z: z_slots}

    def _add_matrix(self, kind: int, part: Rows, rows: Array, read: Array) -> None:
        numbers = part.rows if kind in (OUT, DOWN) else np.searchsorted(rows, part.rows)
        if kind == BETA:
            numbers = np.searchsorted(read, part.rows)
        order = np.lexsort((numbers, part.columns))
        columns, first = np.unique(part.columns[order], return_index=True)
        self.lists["column"].append(columns)
        self.lists["start"].append(first + self.entries)
        self.lists["row"].append(numbers[order].astype(np.uint32))
        self.lists["value"].append(part.values[order])
        self.entries += len(order)
        self.matrix.append(self.matrix[-1] + len(columns))

    def _add_row_facts(
        self, kind: int, rows: Array, layer: Layer, numbers: Array, slots: Array | None
    ) -> None:
        """What rows have beside their entries."""
        none = np.zeros(len(rows), dtype=np.int64)
        norm = layer.norm[rows % self.shape.columns] if kind == Z else none
        self.lists["target"].append(rows if kind in (OUT, DOWN) else none)
        self.lists["slot"].append(none if slots is None else slots)
        self.lists["number"].append(numbers if kind == QKV else none)
        self.lists["norm"].append(norm.astype(np.float32))
        self.rows.append(self.rows[-1] + len(rows))
        if kind == QKV:
            taps = layer.taps[rows]
            looks = np.flatnonzero((taps != PLAIN).any(axis=1))
            self.lists["look"].append(looks)
            self.lists["taps"].append(taps[looks])
            self.look_start.append(self.look_start[-1] + len(looks))


def _renumber_columns(part: Rows, kept: Array) -> Rows:
    """Columns as their positions in `kept`, without the others."""
    part = part.take(np.isin(part.columns, kept))
    return Rows(part.rows, np.searchsorted(kept, part.columns), part.values)


def _between(rows: Array, first: int, count: int) -> slice:
    """Where the rows numbered first to first + count - 1 lie among sorted rows."""
    low, high = np.searchsorted(rows, (first, first + count)).tolist()
    return slice(low, high)
