"""What the sparse engine keeps of a checkpoint: flat arrays that compiled code walks through."""

from __future__ import annotations

import mmap
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
        matrix: [7 * layers + 1] where each matrix' columns begin, in `column` and `start`.
        column: [columns] what each column is multiplied with: a dimension, a row of Z for OUT, of
            GATE for DOWN.
        start: [columns + 1] where its entries begin, in `row` and `value`.
        row, value: [entries]; rows are dimensions for OUT and DOWN, the head among the layer's
            for BETA, else the row's number in its matrix.
        rows: [7 * layers + 1] where the facts on each matrix' rows begin.
        target: [rows] for OUT and DOWN the dimension of each row that is not empty.
        slot: [rows] row of the state for query and key rows, its column for those of Z.
        number: [rows] for rows of QKV the row or column in the checkpoint's state.
        norm: [rows] for rows of Z the weight of the heads' norm.
        look_start: [layers + 1] where each layer's rows of QKV begin, in `look` and `taps`, that
            the convolution changes; the others it leaves as they are.
        look: [looks] their numbers in QKV.
        taps: [looks, 4] their convolutions, the newest token's last.
        gains: [2 * layers, hidden] 1 + weight of the two norms of every layer.
        head_start: [layers + 1] where each layer's heads begin, in `heads`.
        heads: [heads, 11] number of each head that is read; where its rows of query, key and value
            begin and end in QKV, where its rows of Z do; the place and the rows of its state.
        token_start, token_column, token_value: embedding rows of the GPU tokens.
        final_gain: [code + shifts] 1 + weight of the last norm, on the dimensions that logits read.
        code: [code + shifts] those dimensions: first the ones that tell GPU tokens apart.
        logits: [code, tokens] the output head on these, as the bit patterns of bf16.
        shifts: [shifts, 2] what all GPU tokens' and all text tokens' logits read of the others.
        text_limit: what text tokens' shift must stay below, for none of them ever to win.
        signs: [tokens] which of a token's logit weights are 1, bit d for dimension d of `code`, if
            all are 1 or -1; else empty.
        sizes: hidden, key rows a head, value columns a head, numbers of a stream's state.
        epsilon: of every norm.
    """

    matrix: Array
    column: Array
    start: Array
    row: Array
    value: Array
    rows: Array
    target: Array
    slot: Array
    number: Array
    norm: Array
    look_start: Array
    look: Array
    taps: Array
    gains: Array
    head_start: Array
    heads: Array
    token_start: Array
    token_column: Array
    token_value: Array
    final_gain: Array
    code: Array
    logits: Array
    shifts: Array
    text_limit: Array
    signs: Array
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
        window: [streams, looks, 3] the last inputs of the convolutions.
    """

    memory: Array
    window: Array


def empty_state(weights: Weights, streams: int) -> State:
    """The state before the first token.

    Most of it is never written. Memory straight from the system comes page by page, as it is
    touched; numpy would ask for huge pages, which are cleared whole.
    """
    numbers = int(weights.sizes[3])
    pages = mmap.mmap(-1, 4 * streams * numbers)
    return State(
        np.frombuffer(pages, dtype=np.float32).reshape(streams, numbers),
        np.zeros((streams, len(weights.look), 3), dtype=np.float32),
    )
