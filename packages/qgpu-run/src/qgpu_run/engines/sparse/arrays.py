"""What the sparse engine keeps of a checkpoint: flat arrays that compiled code walks through."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

QKV, Z, BETA, OUT, GATE, UP, DOWN = range(7)
MATRICES = 7
"""Matrices of a layer, in the order in which they are stored."""

HEAD, QUERY, QUERY_END, KEY, KEY_END, VALUE, VALUE_END, GATES, GATES_END, OFFSET, ROWS = range(11)
HEAD_FIELDS = 11
"""Columns of `Weights.heads`."""


class Weights(NamedTuple):
    """Weights of the layers that matter, as sparse rows; all values are bf16 numbers in float32.

    Only rows that are not empty are there, numbered anew in each layer; so are the rows and
    columns of a head's state that can be other than 0.

    Attributes:
        matrix: [7 * layers + 1] where each matrix' rows begin, in `row` and `start`.
        row: [rows] where the row's result goes: the dimension for OUT and DOWN, the head among
            the layer's for BETA, else the row's number in its matrix.
        start: [rows + 1] where its entries begin, in `column` and `value`.
        column, value: [entries]; columns are dimensions, rows of Z for OUT, of GATE for DOWN.
        slot: [rows] row of the state for query and key rows, its column for those of value and Z.
        number: [rows] for rows of QKV the row or column in the checkpoint's state.
        norm: [rows] for rows of Z the weight of the heads' norm.
        taps: [rows, 4] convolution of the rows of QKV, the newest token's last; else unused.
        window: [rows] for rows of QKV that look at tokens before, their number; else -1.
        gains: [2 * layers, hidden] 1 + weight of the two norms of every layer.
        head_start: [layers + 1] where each layer's heads begin, in `heads`.
        heads: [heads, 11] number of each head that is read; where its rows of query, key and value
            begin and end in QKV, where its rows of Z do; the place and the rows of its state.
        token_start, token_column, token_value: embedding rows of the GPU tokens.
        final_gain: [code] 1 + weight of the last norm, on the dimensions that logits read.
        code: [code] those dimensions.
        logits: [code, tokens] the output head on them.
        sizes: hidden, key rows a head, value columns a head, numbers of a stream's state, rows
            with a window.
        epsilon: of every norm.
    """

    matrix: Array
    row: Array
    start: Array
    column: Array
    value: Array
    slot: Array
    number: Array
    norm: Array
    taps: Array
    window: Array
    gains: Array
    head_start: Array
    heads: Array
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
    """What streams of tokens remember.

    Attributes:
        memory: [streams, numbers] float32, the recurrent states of all heads one after the other,
            each by rows.
        window: [streams, rows, 3] the last inputs of the convolutions.
    """

    memory: Array
    window: Array


def empty_state(weights: Weights, streams: int) -> State:
    """The state before the first token."""
    numbers, windows = int(weights.sizes[3]), int(weights.sizes[4])
    return State(
        np.zeros((streams, numbers), dtype=np.float32),
        np.zeros((streams, windows, 3), dtype=np.float32),
    )
