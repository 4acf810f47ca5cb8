"""One token through the layers, rounding to bf16 wherever the Qwen3.5 layer does.

Source: transformers, `modeling_qwen3_5.py` (`Qwen3_5GatedDeltaNet`, `Qwen3_5MLP`,
`Qwen3_5RMSNorm`). Zero weights, and rows of a state whose key is 0, are not visited: what they add
is 0 in the model as well.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from qgpu_run.engines.sparse.arrays import (
    BETA,
    DOWN,
    GATE,
    MATRICES,
    OUT,
    QKV,
    UP,
    Array,
    State,
    Weights,
    Z,
)

TAPS = 4
L2_EPSILON = np.float32(1e-6)
SILU_EXACT = np.float32(104.0)
"""From here on exp(-x) is below half a step of 1, and exp(x) overflows: silu is x, or -0."""

CHUNK = 8192
"""Logits worked on at a time: they stay in the first cache."""

compiled = njit(cache=True, fastmath=False, error_model="numpy")


@compiled
def round_bf16(x: Array) -> None:
    """Rounds every element to bf16, ties to even, in place."""
    bits = x.view(np.uint32)
    for i in range(len(bits)):
        b = bits[i]
        bits[i] = (b + np.uint32(0x7FFF) + ((b >> np.uint32(16)) & np.uint32(1))) & np.uint32(
            0xFFFF0000
        )


@compiled
def _silu(x: np.float32) -> np.float32:
    if x >= SILU_EXACT:
        return x
    if x <= -SILU_EXACT:
        return np.float32(-0.0)
    return x / (np.float32(1.0) + np.float32(math.exp(-x)))


@compiled
def _product(w: Weights, layer: int, which: int, x: Array, out: Array) -> None:
    """out = matrix @ x, on the rows that are not empty."""
    m = MATRICES * layer + which
    for r in range(w.matrix[m], w.matrix[m + 1]):
        total = np.float32(0.0)
        for k in range(w.start[r], w.start[r + 1]):
            total += w.value[k] * x[w.column[k]]
        out[w.row[r]] = total


@compiled
def _scale(x: Array, epsilon: np.float32) -> np.float32:
    total = np.float32(0.0)
    for i in range(len(x)):
        total += x[i] * x[i]
    scale: np.float32 = np.float32(1.0) / np.sqrt(total / np.float32(len(x)) + epsilon)
    return scale


@compiled
def _norm(x: Array, gain: Array, epsilon: np.float32, out: Array) -> None:
    scale = _scale(x, epsilon)
    for i in range(len(x)):
        out[i] = (x[i] * scale) * gain[i]
    round_bf16(out)


@compiled
def _convolve(w: Weights, s: State, layer: int, mixed: Array) -> None:
    """The causal convolution and its SiLU, on the rows that QKV has."""
    m = MATRICES * layer + QKV
    one = np.empty(1, dtype=np.float32)
    for r in range(w.matrix[m], w.matrix[m + 1]):
        window = s.window[r]
        for t in range(TAPS - 1):
            window[t] = window[t + 1]
        window[TAPS - 1] = mixed[w.row[r]]
        total = np.float32(0.0)
        for t in range(TAPS):
            total += window[t] * w.convolution[r, t]
        one[0] = total
        round_bf16(one)
        one[0] = _silu(one[0])
        round_bf16(one)
        mixed[w.row[r]] = one[0]


@compiled
def _unit_scale(x: Array) -> np.float32:
    total = np.float32(0.0)
    for i in range(len(x)):
        total += x[i] * x[i]
    scale: np.float32 = np.float32(1.0) / np.sqrt(total + L2_EPSILON)
    return scale


@compiled
def _head(
    memory: Array, query: Array, key: Array, value: Array, beta: np.float32, read: Array
) -> None:
    """The gated delta rule without decay: writes, then reads."""
    columns = len(value)
    if beta != np.float32(0.0):
        unit = _unit_scale(key)
        held = np.zeros(columns, dtype=np.float32)
        for i in range(len(key)):
            if key[i] != np.float32(0.0):
                k = key[i] * unit
                for c in range(columns):
                    held[c] += memory[i, c] * k
        for i in range(len(key)):
            if key[i] != np.float32(0.0):
                k = key[i] * unit
                for c in range(columns):
                    memory[i, c] += k * ((value[c] - held[c]) * beta)
    read[:] = np.float32(0.0)
    unit = _unit_scale(query)
    root = np.float32(math.sqrt(len(query)))
    for i in range(len(query)):
        if query[i] != np.float32(0.0):
            q = (query[i] * unit) / root
            for c in range(columns):
                read[c] += memory[i, c] * q
    round_bf16(read)


@compiled
def _mixer(w: Weights, s: State, layer: int, x: Array, buffers: Array, out: Array) -> None:
    rows, columns, heads = w.sizes[1], w.sizes[2], w.sizes[3]
    keys = heads * rows
    mixed, gate, gated = buffers[0], buffers[1], buffers[2]
    mixed[:] = np.float32(0.0)
    gate[:] = np.float32(0.0)
    gated[:] = np.float32(0.0)
    beta = np.zeros(heads, dtype=np.float32)
    _product(w, layer, QKV, x, mixed)
    round_bf16(mixed)
    _convolve(w, s, layer, mixed)
    _product(w, layer, Z, x, gate)
    round_bf16(gate)
    _product(w, layer, BETA, x, beta)
    round_bf16(beta)
    for h in range(heads):
        beta[h] = np.float32(1.0) / (np.float32(1.0) + np.float32(math.exp(-beta[h])))
    round_bf16(beta)
    read = np.empty(columns, dtype=np.float32)
    for index in range(w.head_start[layer], w.head_start[layer + 1]):
        h = w.head[index]
        query = mixed[h * rows : (h + 1) * rows]
        key = mixed[keys + h * rows : keys + (h + 1) * rows]
        value = mixed[2 * keys + h * columns : 2 * keys + (h + 1) * columns]
        _head(s.memory[index], query, key, value, beta[h], read)
        scale = _scale(read, w.epsilon[0])
        for c in range(columns):
            read[c] = read[c] * scale
        round_bf16(read)
        for c in range(columns):
            read[c] = w.head_norm[layer, c] * read[c]
        round_bf16(read)
        for c in range(columns):
            at = h * columns + c
            if gate[at] != np.float32(0.0):
                gated[at] = read[c] * _silu(gate[at])
    round_bf16(gated)
    _product(w, layer, OUT, gated, out)
    round_bf16(out)


@compiled
def _mlp(w: Weights, layer: int, x: Array, buffers: Array, out: Array) -> None:
    gate, up = buffers[3], buffers[4]
    gate[:] = np.float32(0.0)
    up[:] = np.float32(0.0)
    _product(w, layer, GATE, x, gate)
    round_bf16(gate)
    _product(w, layer, UP, x, up)
    round_bf16(up)
    for i in range(len(gate)):
        if gate[i] != np.float32(0.0):
            gate[i] = _silu(gate[i])
    round_bf16(gate)
    for i in range(len(gate)):
        gate[i] *= up[i]
    round_bf16(gate)
    _product(w, layer, DOWN, gate, out)
    round_bf16(out)


@compiled
def forward(w: Weights, s: State, tokens: Array, width: int, codes: Array) -> None:
    """Reads tokens; writes after each the normed dimensions that logits read.

    Args:
        tokens: int64 [n], ids of the machine's vocabulary.
        width: the widest buffer that a layer needs.
        codes: float32 [n, code], filled.
    """
    hidden = w.sizes[0]
    epsilon = w.epsilon[0]
    buffers = np.zeros((5, width), dtype=np.float32)
    x = np.empty(hidden, dtype=np.float32)
    normed = np.empty(hidden, dtype=np.float32)
    out = np.zeros(hidden, dtype=np.float32)
    for t in range(len(tokens)):
        x[:] = np.float32(0.0)
        for k in range(w.token_start[tokens[t]], w.token_start[tokens[t] + 1]):
            x[w.token_column[k]] = w.token_value[k]
        for layer in range(len(w.head_start) - 1):
            _norm(x, w.gains[2 * layer], epsilon, normed)
            out[:] = np.float32(0.0)
            _mixer(w, s, layer, normed, buffers, out)
            for i in range(hidden):
                x[i] += out[i]
            round_bf16(x)
            _norm(x, w.gains[2 * layer + 1], epsilon, normed)
            out[:] = np.float32(0.0)
            _mlp(w, layer, normed, buffers, out)
            for i in range(hidden):
                x[i] += out[i]
            round_bf16(x)
        scale = _scale(x, epsilon)
        for i in range(len(w.code)):
            codes[t, i] = (x[w.code[i]] * scale) * w.final_gain[i]
        round_bf16(codes[t])


@compiled
def best_two(w: Weights, code: Array) -> tuple[int, np.float32, np.float32]:
    """The first of the largest logits, it, and the second largest."""
    best, top, second = 0, np.float32(-np.inf), np.float32(-np.inf)
    tokens = w.logits.shape[1]
    sums = np.empty(CHUNK, dtype=np.float32)
    for low in range(0, tokens, CHUNK):
        size = min(CHUNK, tokens - low)
        part = sums[:size]
        part[:] = np.float32(0.0)
        for d in range(len(code)):
            row = w.logits[d, low : low + size]
            factor = code[d]
            for i in range(size):
                part[i] += row[i] * factor
        round_bf16(part)
        for i in range(size):
            if part[i] > top:
                best, second, top = low + i, top, part[i]
            elif part[i] > second:
                second = part[i]
    return best, top, second
