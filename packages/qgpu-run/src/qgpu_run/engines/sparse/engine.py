"""Runs launches on the weights that GPU tokens can reach, token for token as transformers does."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from qgpu_run.engines.engine import Prediction
from qgpu_run.engines.sparse.arrays import Array, Weights, empty_state
from qgpu_run.engines.sparse.cached_weights import cached_weights
from qgpu_run.engines.sparse.kernel import best_two, copy_stream, forward
from qgpu_run.engines.sparse.memory_map import memory_index, read_words
from qgpu_run.engines.sparse.pipeline import LEAST, read_pipelined
from qgpu_run.engines.sparse.row_groups import last_positions, row_groups
from qgpu_run.errors import ModelError
from qgpu_run.load_model import ModelManifest, verified_manifest

BF16_STEPS = 128.0
"""bf16 numbers between two powers of two."""

PIECE = 256
"""Tokens between two reports of progress."""

MAX_KNOWN = 1 << 16
"""Codes whose predictions are kept."""


def load_sparse_engine(
    path: Path, *, progress: Callable[[int], None] | None = None, threads: int | None = None
) -> SparseEngine:
    """The engine of a merged checkpoint, on so many cores; on all if None.

    Raises:
        ModelError: it is foreign or damaged, or parts of it cannot be shown not to matter.
    """
    manifest = verified_manifest(path)
    return SparseEngine(manifest, cached_weights(manifest), progress=progress, threads=threads)


class SparseEngine:
    """An engine over `Weights`; see `read_weights` for what was left out and why it may be."""

    name = "sparse"
    restarts_rows = True

    def __init__(
        self,
        manifest: ModelManifest,
        weights: Weights,
        *,
        progress: Callable[[int], None] | None = None,
        threads: int | None = None,
    ) -> None:
        self.config = manifest.config
        self._weights = weights
        self._progress = progress
        self._width = int(np.diff(weights.rows).max())
        try:
            self._words = memory_index(self.config, manifest.memory, weights)
        except ModelError as error:
            raise ModelError(f"{manifest.path}: {error}") from None
        self._places = np.empty(0, dtype=np.int64)
        self._known: dict[bytes, Prediction] = {}
        self._threads = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._threads)
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self._state = self._stream = empty_state(self._weights, 1)

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """Reads tokens and takes the argmax of all logits after the last."""
        return self._predict(self._read_stream(tokens)[-1])

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """Reads all tokens; predictions after each from `first` on."""
        return [self._predict(code) for code in self._read_stream(tokens)[first:]]

    def score_rows(self, rows: Sequence[Sequence[int]]) -> list[list[Prediction]]:
        """Reads independent streams; predictions after every token.

        Each stream is read on a thread of its own, as many at a time as there are cores.
        """
        self._state = self._stream = empty_state(self._weights, len(rows))
        codes = list(self._pool.map(self._read, rows, range(len(rows))))
        return [[self._predict(code) for code in row] for row in codes]

    def fork(self, rows: int) -> None:
        """Makes rows, each with a copy of the stream's state."""
        self._places = np.flatnonzero(self._stream.memory[0])
        self._state = empty_state(self._weights, rows)
        list(self._pool.map(lambda row: self._copy(row, False), range(rows)))

    def restart(self, row: int) -> None:
        """Makes a row's state a copy of the stream's again."""
        self._copy(row, True)

    def _copy(self, row: int, used: bool) -> None:
        copy_stream(self._stream, self._places, self._state, row, used)

    def join(self) -> None:
        """Drops the rows."""
        self._state = self._stream

    def feed_rows(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Prediction]:
        """Reads tokens in the rows named, on all cores; the predictions after the last of each."""
        groups = row_groups(rows, tokens, self._threads)
        codes = self._pool.map(self._read_group, (streams for _, streams, _ in groups),
                               (numbers for _, _, numbers in groups))  # fmt: skip
        found: list[Prediction | None] = [None] * len(rows)
        for (places, streams, _), part in zip(groups, codes, strict=True):
            named = [rows[place] for place in places]
            for place, at in zip(places, last_positions(named, streams), strict=True):
                found[place] = self._predict(part[at])
        if self._progress is not None:
            self._progress(sum(map(len, tokens)))
        return [prediction for prediction in found if prediction is not None]

    def _read_group(self, streams: Array, tokens: Array) -> Array:
        codes = np.empty((len(tokens), len(self._weights.code)), dtype=np.float32)
        forward(self._weights, self._state, tokens, streams, self._width, codes)
        return codes

    def _read_stream(self, tokens: Sequence[int]) -> Array:
        stages = min(self._threads, self._weights.layers)
        if stages == 1 or len(tokens) < LEAST:
            return self._read(tokens)
        codes = np.empty((len(tokens), len(self._weights.code)), dtype=np.float32)
        read_pipelined(
            self._pool, stages, self._weights, self._state, np.array(tokens, dtype=np.int64),
            self._width, codes, self._progress,
        )  # fmt: skip
        return codes

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
        key = code.tobytes()
        prediction = self._known.get(key)
        if prediction is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            prediction = self._known[key] = self._choose(code)
        return prediction

    def _choose(self, code: Array) -> Prediction:
        w, bits = self._weights, len(self._weights.logits)
        gpu, text = code[bits:] @ w.shifts
        if gpu != 0 or not text <= w.text_limit[0]:
            raise ModelError("the marks of GPU tokens are not set: text tokens could win")
        token, top, second = best_two(w, code[:bits])
        step = 2.0 ** np.floor(np.log2(abs(top))) / BF16_STEPS
        return Prediction(int(token), float((top - second) / step))

    def read_memory(self, row: int = 0) -> list[int]:
        """The words of a row's memory, out of the recurrent states that hold them."""
        return read_words(self._state.memory[row], self._words)
