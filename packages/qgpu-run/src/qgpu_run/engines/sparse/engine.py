"""Runs launches on the weights that GPU tokens can reach, token for token as transformers does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from qgpu_run.engines.engine import Prediction
from qgpu_run.engines.sparse.arrays import Array, Weights, empty_state
from qgpu_run.engines.sparse.cached_weights import cached_weights
from qgpu_run.engines.sparse.kernel import best_two, forward
from qgpu_run.load_model import ModelManifest, read_manifest

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
    manifest = read_manifest(path)
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
        hidden, rows, columns, heads = (int(n) for n in weights.sizes)
        neurons = int(weights.row.max()) + 1
        self._width = max(heads * (2 * rows + columns), neurons, hidden)
        self._state = empty_state(weights)

    def reset(self) -> None:
        """Forgets everything."""
        self._state = empty_state(self._weights)

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """Reads tokens and takes the argmax of all logits after the last."""
        return self._predict(self._read(tokens)[-1])

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """Reads all tokens; predictions after each from `first` on."""
        return [self._predict(code) for code in self._read(tokens)[first:]]

    def _read(self, tokens: Sequence[int]) -> Array:
        codes = np.empty((len(tokens), len(self._weights.code)), dtype=np.float32)
        for low in range(0, len(tokens), PIECE):
            piece = np.array(tokens[low : low + PIECE], dtype=np.int64)
            part = codes[low : low + PIECE]
            forward(self._weights, self._state, piece, self._width, part)
            if self._progress is not None:
                self._progress(len(piece))
        return codes

    def _predict(self, code: Array) -> Prediction:
        token, top, second = best_two(self._weights, code)
        # Text tokens' logits are 0, and the first of them stands in front of all GPU tokens.
        if top <= 0:
            return Prediction(-1, 0.0)
        step = 2.0 ** np.floor(np.log2(top)) / BF16_STEPS
        return Prediction(int(token), float((top - max(second, np.float32(0))) / step))

    def read_memory(self) -> list[int]:
        """The words of memory, out of the recurrent states that hold them."""
        config, memory = self.config, self._memory
        columns, rows = int(memory["columns"]), int(memory["rows_per_head"])
        weights = 1 << np.arange(columns, dtype=np.int64)
        words = [0] * config.memory_words
        for bank, groups in enumerate(memory["banks"]):
            for group, (layer, head) in enumerate(groups):
                state = self._state.memory[self._index(layer, head)]
                bits = state[:rows, :columns] > 0
                for row, word in enumerate((bits * weights).sum(axis=1).tolist()):
                    address = (group * rows + row) * config.lanes + bank
                    if address < config.memory_words:
                        words[address] = word
        return words

    def _index(self, layer: int, head: int) -> int:
        w = self._weights
        low, high = w.head_start[layer], w.head_start[layer + 1]
        return int(low + np.searchsorted(w.head[low:high], head))
