"""One long stream on several cores: each takes the tokens through some of the layers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np

from qgpu_run.engines.sparse.arrays import Array, State, Weights
from qgpu_run.engines.sparse.kernel import forward_part
from qgpu_run.engines.sparse.tile_code import TILE

CHUNK = 4 * TILE
"""Tokens that are handed on together."""

LEAST = 4 * CHUNK
"""Tokens from which on it is worth it."""


def read_pipelined(
    pool: ThreadPoolExecutor,
    stages: int,
    weights: Weights,
    state: State,
    tokens: Array,
    width: int,
    codes: Array,
    progress: Callable[[int], None] | None,
) -> None:
    """Reads tokens of the first stream; `codes` float32 [tokens, code] is filled.

    Args:
        pool: has at least `stages` threads free.
        stages: cores; the layers are divided among them.
        tokens: int64 [tokens].
        width: most rows of a matrix.
    """
    chunks = range(0, len(tokens), CHUNK)
    between: list[Array | None] = [None] * len(chunks)
    done = [[Event() for _ in chunks] for _ in range(stages)]
    bounds = np.linspace(0, weights.layers, stages + 1).astype(int).tolist()
    streams = np.zeros(CHUNK, dtype=np.int64)

    def run(stage: int) -> None:
        try:
            for index, low in enumerate(chunks):
                part = tokens[low : low + CHUNK]
                if stage:
                    done[stage - 1][index].wait()
                    x = between[index]
                    if x is None:
                        return
                else:
                    tiles = -(-len(part) // TILE)
                    x = np.empty((tiles, int(weights.sizes[0]), TILE), dtype=np.float32)
                forward_part(
                    weights, state, part, streams[: len(part)], width,
                    x, bounds[stage], bounds[stage + 1], codes[low : low + CHUNK],
                )  # fmt: skip
                # The last one lets go of the numbers.
                between[index] = None if stage == stages - 1 else x
                done[stage][index].set()
                if stage == stages - 1 and progress is not None:
                    progress(len(part))
        finally:
            # After an error nobody waits for ever.
            for event in done[stage]:
                event.set()

    for future in [pool.submit(run, stage) for stage in range(stages)]:
        future.result()
