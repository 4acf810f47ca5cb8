"""What the sparse engine keeps of a checkpoint: flat arrays that compiled code walks through."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

QKV, Z, BETA, OUT, GATE, UP, DOWN = range(7)
MATRICES = 7
"""Matrices of a layer, in the order in which they are stored."""


class Weights(NamedTuple):
    """Weights of the layers that matter, as sparse rows; all values are bf16 numbers in float32.

    Attributes:
        matrix: [7 * layers + 1] where each matrix' rows begin, in `row` and `start`.
        row: [rows] number of each row that is not empty.
        start: [rows + 1] where its entries begin, in `column` and `value`.
        column, value: [entries].
        convolution: [rows, 4] taps of the rows of QKV, the newest token's last; else unused.
        gains: [2 * layers, hidden] 1 + weight of the two norms of every layer.
        head_start: [layers + 1] where each layer's heads begin, in `head`.
        head: [heads] number of each head that is read.
        head_norm: [layers, columns] weight of the heads' norm.
        token_start, token_column, token_value: embedding rows of the GPU tokens.
        final_gain: [code] 1 + weight of the last norm, on the dimensions that logits read.
        code: [code] those dimensions.
        logits: [code, tokens] the output head on them.
        sizes: hidden, key rows a head, value columns a head, heads a layer (all, for keys as for
            values).
        epsilon: of every norm.
    """

    matrix: Array
    row: Array
    start: Array
    column: Array
    value: Array
    convolution: Array
    gains: Array
    head_start: Array
    head: Array
    head_norm: Array
    token_start: Array
    token_column: Array
    token_value: Array
    final_gain: Array
    code: Array
    logits: Array
    sizes: Array
    epsilon: Array

    @property
    def layers(self) -> int:
        return len(self.head_start) - 1


class State(NamedTuple):
    """What one stream remembers.

    Attributes:
        memory: [heads, key rows, value columns] float32, as the model's recurrent state.
        window: [rows, 4] the last inputs of the convolution.
    """

    memory: Array
    window: Array


def empty_state(weights: Weights) -> State:
    """The state before the first token."""
    _, rows, columns, _ = weights.sizes
    return State(
        np.zeros((len(weights.head), rows, columns), dtype=np.float32),
        np.zeros((len(weights.row), 4), dtype=np.float32),
    )
