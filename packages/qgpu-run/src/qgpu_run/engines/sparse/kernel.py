"""Tokens through the layers, rounding to bf16 wherever the Qwen3.5 layer does.

Source: transformers, `modeling_qwen3_5.py` (`Qwen3_5GatedDeltaNet`, `Qwen3_5MLP`,
`Qwen3_5RMSNorm`). Zero weights, and rows of a state whose key is 0, are not visited: what they add
is 0 in the model as well.

A tile of tokens goes through layer by layer, one column each; columns belong to streams, those of
the same stream in order. `tile` is a tuple as long as there are columns: compiled code knows a
tuple's length, and loops over columns become vector instructions.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from qgpu_run.engines.sparse.arrays import (
    BETA,
    DOWN,
    GATE,
    GATES,
    GATES_END,
    KEY,
    KEY_END,
    MATRICES,
    OFFSET,
    OUT,
    QKV,
    QUERY,
    QUERY_END,
    ROWS,
    UP,
    VALUE,
    VALUE_END,
    Array,
    State,
    Weights,
    Z,
)
from qgpu_run.engines.sparse.dot_tile import TILE, dot_tile

ONE_TOKEN = (None,)
TOKENS = (None,) * TILE

TAPS = 4
L2_EPSILON = np.float32(1e-6)
SILU_EXACT = np.float32(104.0)
"""From here on exp(-x) is below half a step of 1, and exp(x) overflows: silu is x, or -0."""

CHUNK = 8192
"""Logits worked on at a time: they stay in the first cache."""

ZERO = np.float32(0.0)
ONE = np.float32(1.0)

compiled = njit(cache=True, fastmath=False, error_model="numpy", nogil=True)


@compiled
def round_bf16(x: Array) -> None:
    """Rounds every element to bf16, ties to even, in place; `x` is contiguous."""
    bits = x.reshape(-1).view(np.uint32)
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
    return x / (ONE + np.float32(math.exp(-x)))


@compiled
def _silu_all(x: Array) -> None:
    flat = x.reshape(-1)
    for i in range(len(flat)):
        if flat[i] != ZERO:
            flat[i] = _silu(flat[i])


@compiled
def _product(w: Weights, tile: tuple[None, ...], m: int, x: Array, out: Array) -> None:
    """out[row, :] = matrix @ x for the rows of matrix m."""
    for r in range(w.matrix[m], w.matrix[m + 1]):
        if len(tile) == 1:
            total = ZERO
            for k in range(w.start[r], w.start[r + 1]):
                total += w.value[k] * x[w.column[k], 0]
            out[w.row[r], 0] = total
        else:
            dot_tile(w.value, w.column, w.start[r], w.start[r + 1], x, out, w.row[r])


@compiled
def _add_product(
    w: Weights, tile: tuple[None, ...], m: int, gated: Array, x: Array, one: Array
) -> None:
    """x += matrix @ gated, both rounded."""
    for r in range(w.matrix[m], w.matrix[m + 1]):
        if len(tile) == 1:
            total = ZERO
            for k in range(w.start[r], w.start[r + 1]):
                total += w.value[k] * gated[w.column[k], 0]
            one[0, 0] = total
        else:
            dot_tile(w.value, w.column, w.start[r], w.start[r + 1], gated, one, 0)
        round_bf16(one)
        to = x[w.row[r]]
        for t in range(len(tile)):
            to[t] += one[0, t]
        round_bf16(to)


@compiled
def _scales(x: Array, tile: tuple[None, ...], epsilon: np.float32, scales: Array) -> None:
    """1 / rms of every column."""
    scales[:] = ZERO
    if len(tile) == 1:
        # Four sums, so that an addition need not wait for the one before.
        a = b = c = d = ZERO
        flat = x.reshape(-1)
        whole = len(flat) // 4 * 4
        for i in range(0, whole, 4):
            a += flat[i] * flat[i]
            b += flat[i + 1] * flat[i + 1]
            c += flat[i + 2] * flat[i + 2]
            d += flat[i + 3] * flat[i + 3]
        for i in range(whole, len(flat)):
            a += flat[i] * flat[i]
        scales[0] = (a + b) + (c + d)
    else:
        for i in range(len(x)):
            for t in range(len(tile)):
                scales[t] += x[i, t] * x[i, t]
    for t in range(len(tile)):
        scales[t] = ONE / np.sqrt(scales[t] / np.float32(len(x)) + epsilon)


@compiled
def _norm(
    x: Array, tile: tuple[None, ...], gain: Array, epsilon: np.float32, scales: Array, out: Array
) -> None:
    _scales(x, tile, epsilon, scales)
    for i in range(len(x)):
        for t in range(len(tile)):
            out[i, t] = (x[i, t] * scales[t]) * gain[i]
    round_bf16(out)


@compiled
def _convolve(w: Weights, s: State, streams: Array, m: int, mixed: Array) -> None:
    """The causal convolution and its SiLU, on the rows of QKV."""
    first = w.matrix[m]
    count = len(streams)
    for i in range(len(mixed)):
        taps = w.taps[first + i]
        number = w.window[first + i]
        row = mixed[i]
        if number < 0:
            for t in range(len(row)):
                row[t] = row[t] * taps[TAPS - 1]
            continue
        for t in range(count):
            window = s.window[streams[t], number]
            newest = row[t]
            row[t] = (
                window[0] * taps[0] + window[1] * taps[1] + window[2] * taps[2] + newest * taps[3]
            )
            window[0], window[1], window[2] = window[1], window[2], newest
    round_bf16(mixed)
    _silu_all(mixed)
    round_bf16(mixed)


@compiled
def _unit_scale(mixed: Array, low: int, high: int, t: int) -> np.float32:
    total = ZERO
    for i in range(low, high):
        if mixed[i, t] != ZERO:
            total += mixed[i, t] * mixed[i, t]
    scale: np.float32 = ONE / np.sqrt(total + L2_EPSILON)
    return scale


@compiled
def _delta_rule(
    head: Array,
    slot: Array,
    memory: Array,
    mixed: Array,
    t: int,
    beta: np.float32,
    root: np.float32,
    buffers: Array,
) -> None:
    """The gated delta rule without decay, on one column: writes, then reads.

    `memory` is the state [rows, columns]; `buffers` [2, columns]: what is read is left in the
    first, the second is for what the state holds at the key.
    """
    columns = head[VALUE_END] - head[VALUE]
    read, held = buffers[0, :columns], buffers[1, :columns]
    low, high = head[KEY], head[KEY_END]
    if beta != ZERO:
        unit = _unit_scale(mixed, low, high, t)
        held[:] = ZERO
        for i in range(low, high):
            if mixed[i, t] != ZERO:
                k = mixed[i, t] * unit
                row = memory[slot[i]]
                for c in range(columns):
                    held[c] += row[c] * k
        for c in range(columns):
            held[c] = (mixed[head[VALUE] + c, t] - held[c]) * beta
        for i in range(low, high):
            if mixed[i, t] != ZERO:
                k = mixed[i, t] * unit
                row = memory[slot[i]]
                for c in range(columns):
                    row[c] += k * held[c]
    read[:] = ZERO
    low, high = head[QUERY], head[QUERY_END]
    unit = _unit_scale(mixed, low, high, t)
    for i in range(low, high):
        if mixed[i, t] != ZERO:
            q = (mixed[i, t] * unit) / root
            row = memory[slot[i]]
            for c in range(columns):
                read[c] += row[c] * q
    round_bf16(read)


@compiled
def _read_heads(
    w: Weights, s: State, streams: Array, layer: int, mixed: Array, beta: Array, gate: Array
) -> None:
    """Every head's delta rule and norm; `gate`, rows of Z, becomes what OUT reads."""
    rows, columns = w.sizes[1], w.sizes[2]
    root = np.float32(math.sqrt(rows))
    m = MATRICES * layer
    slot = w.slot[w.matrix[m + QKV] : w.matrix[m + QKV + 1]]
    z_slot = w.slot[w.matrix[m + Z] : w.matrix[m + Z + 1]]
    norm = w.norm[w.matrix[m + Z] : w.matrix[m + Z + 1]]
    buffers = np.empty((2, columns), dtype=np.float32)
    first = w.head_start[layer]
    for index in range(first, w.head_start[layer + 1]):
        head = w.heads[index]
        width = head[VALUE_END] - head[VALUE]
        size = head[ROWS] * width
        for t in range(len(streams)):
            memory = s.memory[streams[t], head[OFFSET] : head[OFFSET] + size]
            memory = memory.reshape(head[ROWS], width)
            _delta_rule(head, slot, memory, mixed, t, beta[index - first, t], root, buffers)
            read = buffers[0, :width]
            total = ZERO
            for c in range(width):
                total += read[c] * read[c]
            scale = ONE / np.sqrt(total / np.float32(columns) + w.epsilon[0])
            for c in range(width):
                read[c] = read[c] * scale
            round_bf16(read)
            for z in range(head[GATES], head[GATES_END]):
                gate[z, t] = _gated(norm[z] * read[z_slot[z]], gate[z, t])
    round_bf16(gate)


@compiled
def _gated(normed: np.float32, gate: np.float32) -> np.float32:
    if gate == ZERO:
        return ZERO
    return normed * _silu(gate)


@compiled
def _mixer(
    w: Weights,
    s: State,
    tile: tuple[None, ...],
    streams: Array,
    layer: int,
    x: Array,
    normed: Array,
    buffers: Array,
    one: Array,
) -> None:
    m = MATRICES * layer
    mixed = buffers[0, : w.matrix[m + QKV + 1] - w.matrix[m + QKV]]
    gate = buffers[1, : w.matrix[m + Z + 1] - w.matrix[m + Z]]
    beta = buffers[2, : w.head_start[layer + 1] - w.head_start[layer]]
    _product(w, tile, m + QKV, normed, mixed)
    round_bf16(mixed)
    _convolve(w, s, streams, m + QKV, mixed)
    _product(w, tile, m + Z, normed, gate)
    round_bf16(gate)
    beta[:] = ZERO
    _product(w, tile, m + BETA, normed, beta)
    round_bf16(beta)
    flat = beta.reshape(-1)
    for i in range(len(flat)):
        flat[i] = ONE / (ONE + np.float32(math.exp(-flat[i])))
    round_bf16(beta)
    _read_heads(w, s, streams, layer, mixed, beta, gate)
    _add_product(w, tile, m + OUT, gate, x, one)


@compiled
def _mlp(
    w: Weights,
    tile: tuple[None, ...],
    layer: int,
    x: Array,
    normed: Array,
    buffers: Array,
    one: Array,
) -> None:
    m = MATRICES * layer
    neurons = w.matrix[m + GATE + 1] - w.matrix[m + GATE]
    gate, up = buffers[0, :neurons], buffers[1, :neurons]
    _product(w, tile, m + GATE, normed, gate)
    round_bf16(gate)
    _silu_all(gate)
    round_bf16(gate)
    _product(w, tile, m + UP, normed, up)
    round_bf16(up)
    for i in range(neurons):
        for t in range(len(tile)):
            gate[i, t] *= up[i, t]
    round_bf16(gate)
    _add_product(w, tile, m + DOWN, gate, x, one)


@compiled
def _through_layers(
    w: Weights,
    s: State,
    tile: tuple[None, ...],
    tokens: Array,
    streams: Array,
    width: int,
    codes: Array,
) -> None:
    """Reads at most as many tokens as `tile` is long, columns of the streams numbered."""
    hidden = w.sizes[0]
    epsilon = w.epsilon[0]
    buffers = np.empty((3, width, len(tile)), dtype=np.float32)
    scales = np.empty(len(tile), dtype=np.float32)
    one = np.empty((1, len(tile)), dtype=np.float32)
    normed = np.empty((hidden, len(tile)), dtype=np.float32)
    x = np.zeros((hidden, len(tile)), dtype=np.float32)
    for t in range(len(tokens)):
        for k in range(w.token_start[tokens[t]], w.token_start[tokens[t] + 1]):
            x[w.token_column[k], t] = w.token_value[k]
    for layer in range(len(w.head_start) - 1):
        _norm(x, tile, w.gains[2 * layer], epsilon, scales, normed)
        _mixer(w, s, tile, streams, layer, x, normed, buffers, one)
        _norm(x, tile, w.gains[2 * layer + 1], epsilon, scales, normed)
        _mlp(w, tile, layer, x, normed, buffers, one)
    _scales(x, tile, epsilon, scales)
    for t in range(len(tokens)):
        for i in range(len(w.code)):
            codes[t, i] = (x[w.code[i], t] * scales[t]) * w.final_gain[i]
    round_bf16(codes)


@compiled
def forward(w: Weights, s: State, tokens: Array, streams: Array, width: int, codes: Array) -> None:
    """Reads tokens; writes after each the normed dimensions that logits read.

    Args:
        tokens: int64 [n], ids of the machine's vocabulary.
        streams: int64 [n], the stream of each; those of the same stream are in order.
        width: most rows of a matrix.
        codes: float32 [n, code], filled.
    """
    low = 0
    while low < len(tokens):
        if len(tokens) - low == 1:
            high = low + 1
            part = codes[low:high]
            _through_layers(w, s, ONE_TOKEN, tokens[low:high], streams[low:high], width, part)
        else:
            high = min(low + TILE, len(tokens))
            part = codes[low:high]
            _through_layers(w, s, TOKENS, tokens[low:high], streams[low:high], width, part)
        low = high


@compiled
def best_two(w: Weights, code: Array) -> tuple[int, np.float32, np.float32]:
    """The first of the largest logits, it, and the second largest."""
    best, top, second = 0, np.float32(-np.inf), np.float32(-np.inf)
    tokens = w.logits.shape[1]
    sums = np.empty(CHUNK, dtype=np.float32)
    for low in range(0, tokens, CHUNK):
        size = min(CHUNK, tokens - low)
        part = sums[:size]
        part[:] = ZERO
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
