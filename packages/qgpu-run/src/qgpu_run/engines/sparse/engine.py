"""Runs launches on the weights that GPU tokens can reach, token for token as transformers does."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from qgpu_run.engines.engine import Prediction
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
    empty_state,
)
from qgpu_run.engines.sparse.cached_weights import cached_weights
from qgpu_run.engines.sparse.kernel import best_two, forward
from qgpu_run.errors import ModelError
from qgpu_run.load_model import ModelManifest, verified_manifest

BF16_STEPS = 128.0
"""bf16 numbers between two powers of two."""

PIECE = 256
"""Tokens between two reports of progress."""


def load_sparse_engine(
    path: Path, *, progress: Callable[[int], None] | None = None
) -> SparseEngine:
    """The engine of a merged checkpoint.

    Raises:
        ModelError: it is foreign or damaged, or parts of it cannot be shown not to matter.
    """
    manifest = verified_manifest(path)
    return SparseEngine(manifest, cached_weights(manifest), progress=progress)


class SparseEngine:
    """An engine over `Weights`; see `read_weights` for what was left out and why it may be."""

    name = "sparse"

    def __init__(
        self,
        manifest: ModelManifest,
        weights: Weights,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.config = manifest.config
        self._memory = manifest.memory
        self._weights = weights
        self._progress = progress
        self._width = int(np.diff(weights.rows).max())
        self._state = empty_state(weights, 1)

    def reset(self) -> None:
        """Forgets everything."""
        self._state = empty_state(self._weights, 1)

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """Reads tokens and takes the argmax of all logits after the last."""
        return self._predict(self._read(tokens)[-1])

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """Reads all tokens; predictions after each from `first` on."""
        return [self._predict(code) for code in self._read(tokens)[first:]]

    def score_rows(self, rows: Sequence[Sequence[int]]) -> list[list[Prediction]]:
        """Reads independent streams; predictions after every token.

        Each stream is read on a thread of its own, as many at a time as there are cores.
        """
        self._state = empty_state(self._weights, len(rows))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            codes = list(pool.map(self._read, rows, range(len(rows))))
        return [[self._predict(code) for code in row] for row in codes]

    def _read(self, tokens: Sequence[int], stream: int = 0) -> Array:
        codes = np.empty((len(tokens), len(self._weights.code)), dtype=np.float32)
        for low in range(0, len(tokens), PIECE):
            piece = np.array(tokens[low : low + PIECE], dtype=np.int64)
            part = codes[low : low + PIECE]
            streams = np.full(len(piece), stream, dtype=np.int64)
            forward(self._weights, self._state, piece, streams, self._width, part)
            if self._progress is not None:
                self._progress(len(piece))
        return codes

    def _predict(self, code: Array) -> Prediction:
        """The winner among GPU tokens, once it is sure that no text token is above it.

        Raises:
            ModelError: a text token could win, or one number drowns what tells GPU tokens apart.
        """
        w, bits = self._weights, len(self._weights.logits)
        gpu, text = code[bits:] @ w.shifts
        if gpu != 0 or not text <= w.text_limit[0]:
            raise ModelError("the marks of GPU tokens are not set: text tokens could win")
        token, top, second = best_two(w, code[:bits])
        step = 2.0 ** np.floor(np.log2(abs(top))) / BF16_STEPS
        return Prediction(int(token), float((top - second) / step))

    def read_memory(self, row: int = 0) -> list[int]:
        """The words of a stream's memory, out of the recurrent states that hold them."""
        config, memory = self.config, self._memory
        columns, rows = int(memory["columns"]), int(memory["rows_per_head"])
        words = [0] * config.memory_words
        for bank, groups in enumerate(memory["banks"]):
            for group, (layer, head) in enumerate(groups):
                bits = self._head_state(row, layer, head, rows, columns) > 0
                weights = 1 << np.arange(columns, dtype=np.int64)
                for index, word in enumerate((bits * weights).sum(axis=1).tolist()):
                    address = (group * rows + index) * config.lanes + bank
                    if address < config.memory_words:
                        words[address] = word
        return words

    def _head_state(self, stream: int, layer: int, head: int, rows: int, columns: int) -> Array:
        """The first rows and columns of a head's state, as the checkpoint numbers them."""
        w = self._weights
        low, high = w.head_start[layer], w.head_start[layer + 1]
        facts = w.heads[low + np.searchsorted(w.heads[low:high, HEAD], head)]
        first = w.rows[MATRICES * layer + QKV]
        keys = slice(first + facts[KEY], first + facts[KEY_END])
        values = slice(first + facts[VALUE], first + facts[VALUE_END])
        size = facts[ROWS] * (values.stop - values.start)
        packed = self._state.memory[stream, facts[OFFSET] : facts[OFFSET] + size]
        whole = np.zeros((w.sizes[1], w.sizes[2]), dtype=np.float32)
        whole[np.ix_(w.number[keys], w.number[values])] = packed.reshape(facts[ROWS], -1)[
            w.slot[keys]
        ]
        return whole[:rows, :columns]
