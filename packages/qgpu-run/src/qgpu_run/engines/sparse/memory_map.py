"""Where the words of the machine's memory lie in a stream's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from qgpu_isa.machine_config import WORD_BITS, MachineConfig

from qgpu_run.engines.sparse.arrays import (
    HEAD,
    KEY,
    KEY_END,
    MATRICES,
    OFFSET,
    QKV,
    ROWS,
    VALUE,
    VALUE_END,
    Array,
    Weights,
)
from qgpu_run.errors import ModelError

NOWHERE = -1


def memory_index(config: MachineConfig, memory: Mapping[str, Any], weights: Weights) -> Array:
    """int64 [words, 32]: the place of each bit of each word, `NOWHERE` for one that is always 0.

    Args:
        memory: the `memory` of the checkpoint's manifest.

    Raises:
        ModelError: the weights have no such places.
    """
    columns, rows = int(memory["columns"]), int(memory["rows_per_head"])
    if rows > weights.sizes[1] or columns > min(WORD_BITS, weights.sizes[2]):
        raise ModelError(
            f"memory is said to take {rows} rows and {columns} columns of a head, which has "
            f"{weights.sizes[1]} and {weights.sizes[2]}, {WORD_BITS} of them for the bits of a word"
        )
    index = np.full((config.memory_words, WORD_BITS), NOWHERE, dtype=np.int64)
    for bank, groups in enumerate(memory["banks"]):
        for group, (layer, head) in enumerate(groups):
            places = _head_places(weights, layer, head)[:rows, :columns]
            first = group * rows * config.lanes + bank
            addresses = range(first, min(first + rows * config.lanes, len(index)), config.lanes)
            index[first : len(index) : config.lanes, :columns][: len(addresses)] = places[
                : len(addresses)
            ]
    return index


def _head_places(w: Weights, layer: int, head: int) -> Array:
    """The place of each number of a head's state, by row and column as the checkpoint counts."""
    low, high = w.head_start[layer : layer + 2] if layer < w.layers else (0, 0)
    at = np.flatnonzero(w.heads[low:high, HEAD] == head)
    if len(at) == 0:
        raise ModelError(f"memory is said to be in head {head} of layer {layer}, which is unused")
    facts = w.heads[low + at[0]]
    first = w.rows[MATRICES * layer + QKV]
    keys = slice(first + facts[KEY], first + facts[KEY_END])
    values = slice(first + facts[VALUE], first + facts[VALUE_END])
    width = values.stop - values.start
    packed = facts[OFFSET] + np.arange(facts[ROWS] * width).reshape(facts[ROWS], width)
    places = np.full((w.sizes[1], w.sizes[2]), NOWHERE, dtype=np.int64)
    places[np.ix_(w.number[keys], w.number[values])] = packed[w.slot[keys]]
    return places


def read_words(state: Array, index: Array) -> list[int]:
    """The words of memory in a stream's state (float32 [numbers]); `index` from `memory_index`."""
    bits = (state[index] > 0) & (index != NOWHERE)
    words: list[int] = np.packbits(bits, axis=1, bitorder="little").view("<u4")[:, 0].tolist()
    return words
