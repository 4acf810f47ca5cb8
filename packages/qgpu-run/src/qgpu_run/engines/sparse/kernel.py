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
from qgpu_run.engines.sparse.tile_code import (
    TILE,
    add_column,
    any_in_row,
    columns_in_rows,
    scale_rows,
    silu_ends,
    sum_squares,
)

ONE_TOKEN = (None,)
TOKENS = (None,) * TILE

L2_EPSILON = np.float32(1e-6)
SILU_EXACT = np.float32(104.0)
"""From here on exp(-x) is below half a step of 1, and exp(x) overflows: silu is x, or -0."""

SILU_EXACT_BITS = SILU_EXACT.view(np.uint32) - np.uint32(1)

PIECE = 64
"""Elements whose kinds are looked at together."""

WHOLE_TILE = 3
"""Columns from which on a tile, whatever it holds, is faster than single tokens."""

CHUNK = 2048
"""Logits worked on at a time: they stay in the first cache."""

ZERO = np.float32(0.0)
ONE = np.float32(1.0)

compiled = njit(cache=True, fastmath=False, error_model="numpy", nogil=True)


@compiled
def _rounded(bits: np.uint32) -> np.uint32:
    rounded: np.uint32 = (
        bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    ) & np.uint32(0xFFFF0000)
    return rounded


@compiled
def round_bf16(x: Array) -> None:
    """Rounds every element to bf16, ties to even, in place; `x` is contiguous."""
    bits = x.reshape(-1).view(np.uint32)
    for i in range(len(bits)):
        bits[i] = _rounded(bits[i])


@compiled
def _silu(x: np.float32) -> np.float32:
    if x >= SILU_EXACT:
        return x
    if x <= -SILU_EXACT:
        return np.float32(-0.0)
    return x / (ONE + np.float32(math.exp(-x)))


@compiled
def _silu_all(x: Array, tile: tuple[None, ...]) -> None:
    """x = bf16(SiLU(bf16(x))); most rows hold only 0 and numbers without exp."""
    if len(tile) > 1:
        # The two numbers that took exp last: a circuit has few of them, over and over.
        one, silu_one, other, silu_other = ZERO, ZERO, ZERO, ZERO
        value = np.empty(1, dtype=np.float32)
        for row in range(len(x)):
            left = silu_ends(x, row, one, silu_one, other, silu_other)
            while left:
                t = 0
                while not left >> t & 1:
                    t += 1
                number = x[row, t]
                value[0] = _silu(number)
                round_bf16(value)
                other, silu_other, one, silu_one = one, silu_one, number, value[0]
                for t in range(len(tile)):
                    if left >> t & 1 and x[row, t] == number:
                        x[row, t] = value[0]
                        left ^= 1 << t
        return
    round_bf16(x)
    flat = x.reshape(-1)
    bits = flat.view(np.uint32)
    for low in range(0, len(flat), PIECE):
        piece, pattern = flat[low : low + PIECE], bits[low : low + PIECE]
        between = False
        for i in range(len(piece)):
            # Less 1, 0 is the largest of all: one comparison finds sizes between 0 and the limit.
            size = (pattern[i] & np.uint32(0x7FFFFFFF)) - np.uint32(1)
            between |= size < SILU_EXACT_BITS
        if between:
            known, silu = ZERO, ZERO
            for i in range(len(piece)):
                if piece[i] != known:
                    known, silu = piece[i], _silu(piece[i])
                piece[i] = silu
            round_bf16(piece)
        else:
            for i in range(len(piece)):
                piece[i] = max(piece[i], ZERO)


@compiled
def _multiply(x: Array, factor: Array) -> None:
    """x = bf16(x * bf16(factor)), element by element."""
    flat, factors = x.reshape(-1), factor.reshape(-1)
    bits, factor_bits = flat.view(np.uint32), factors.view(np.uint32)
    for i in range(len(flat)):
        factor_bits[i] = _rounded(factor_bits[i])
        flat[i] *= factors[i]
        bits[i] = _rounded(bits[i])


@compiled
def _product(w: Weights, tile: tuple[None, ...], m: int, x: Array, out: Array) -> None:
    """out = matrix m @ x; columns that meet only zeros, most of them, are skipped."""
    out[:] = ZERO
    for c in range(w.matrix[m], w.matrix[m + 1]):
        column = w.column[c]
        if len(tile) == 1:
            factor = x[column, 0]
            if factor != ZERO:
                for k in range(w.start[c], w.start[c + 1]):
                    out[w.row[k], 0] += w.value[k] * factor
        elif any_in_row(x, column):
            add_column(w.value, w.row, w.start[c], w.start[c + 1], x, column, out)


@compiled
def _add_product(
    w: Weights, tile: tuple[None, ...], m: int, gated: Array, x: Array, sums: Array
) -> None:
    """x += matrix m @ gated, both rounded; `sums` is as large as x."""
    _product(w, tile, m, gated, sums)
    bits, x_bits = sums.view(np.uint32), x.view(np.uint32)
    for r in range(w.rows[m], w.rows[m + 1]):
        row = w.target[r]
        for t in range(len(tile)):
            bits[row, t] = _rounded(bits[row, t])
            x[row, t] += sums[row, t]
            x_bits[row, t] = _rounded(x_bits[row, t])


@compiled
def _scales(x: Array, tile: tuple[None, ...], epsilon: np.float32, scales: Array) -> None:
    """1 / rms of every column."""
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
        scales[0, 0] = (a + b) + (c + d)
    else:
        sum_squares(x, scales)
    for t in range(len(tile)):
        scales[0, t] = ONE / np.sqrt(scales[0, t] / np.float32(len(x)) + epsilon)


@compiled
def _norm(
    x: Array, tile: tuple[None, ...], gain: Array, epsilon: np.float32, scales: Array, out: Array
) -> None:
    _scales(x, tile, epsilon, scales)
    if len(tile) == 1:
        scale = scales[0, 0]
        for i in range(len(x)):
            out[i, 0] = (x[i, 0] * scale) * gain[i]
        round_bf16(out)
    else:
        scale_rows(x, scales, gain, out)


@compiled
def _convolve(w: Weights, s: State, streams: Array, layer: int, mixed: Array) -> None:
    """The causal convolution on the rows of QKV that it changes, which it rounds before and after.

    The others stay as they are.
    """
    for look in range(w.look_start[layer], w.look_start[layer + 1]):
        taps, row = w.taps[look], mixed[w.look[look]]
        round_bf16(row)
        for t in range(len(streams)):
            window = s.window[streams[t], look]
            newest = row[t]
            row[t] = (
                window[0] * taps[0] + window[1] * taps[1] + window[2] * taps[2] + newest * taps[3]
            )
            window[0], window[1], window[2] = window[1], window[2], newest
        round_bf16(row)


@compiled
def _find_rows(
    mixed: Array,
    tile: tuple[None, ...],
    low: int,
    high: int,
    columns: int,
    found: Array,
    counts: Array,
) -> None:
    """The rows from low to high - 1 that are not 0, for each of the first columns."""
    counts[:] = 0
    for i in range(low, high):
        if len(tile) == 1:
            if mixed[i, 0] != ZERO:
                found[0, counts[0]] = i
                counts[0] += 1
        elif any_in_row(mixed, i):
            for t in range(columns):
                if mixed[i, t] != ZERO:
                    found[t, counts[t]] = i
                    counts[t] += 1


@compiled
def _unit_scale(mixed: Array, rows: Array, t: int) -> np.float32:
    total = ZERO
    for i in rows:
        total += mixed[i, t] * mixed[i, t]
    scale: np.float32 = ONE / np.sqrt(total + L2_EPSILON)
    return scale


@compiled
def _write(
    memory: Array,
    slot: Array,
    rows: Array,
    mixed: Array,
    t: int,
    beta: np.float32,
    value: Array,
    held: Array,
) -> None:
    """The gated delta rule without decay: what the state holds at a key becomes `value`.

    `memory` is the state [rows, columns], `rows` the rows of `mixed` that hold the key's numbers;
    `value` and `held` are overwritten.
    """
    unit = _unit_scale(mixed, rows, t)
    held[:] = ZERO
    for i in rows:
        k = mixed[i, t] * unit
        row = memory[slot[i]]
        for c in range(len(value)):
            held[c] += row[c] * k
    for c in range(len(value)):
        value[c] = (value[c] - held[c]) * beta
    for i in rows:
        k = mixed[i, t] * unit
        row = memory[slot[i]]
        for c in range(len(value)):
            row[c] += k * value[c]


@compiled
def _query(
    memory: Array, slot: Array, rows: Array, mixed: Array, t: int, root: np.float32, read: Array
) -> None:
    """What the state holds at a query, in `read`."""
    read[:] = ZERO
    unit = _unit_scale(mixed, rows, t)
    for i in rows:
        q = (mixed[i, t] * unit) / root
        row = memory[slot[i]]
        for c in range(len(read)):
            read[c] += row[c] * q
    round_bf16(read)


@compiled
def _read_heads(
    w: Weights,
    s: State,
    tile: tuple[None, ...],
    streams: Array,
    layer: int,
    mixed: Array,
    beta: Array,
    gate: Array,
) -> None:
    """Every head's delta rule and norm; `gate`, rows of Z, becomes what OUT reads."""
    rows, columns = w.sizes[1], w.sizes[2]
    root = np.float32(math.sqrt(rows))
    m = MATRICES * layer
    slot = w.slot[w.rows[m + QKV] : w.rows[m + QKV + 1]]
    z_slot = w.slot[w.rows[m + Z] : w.rows[m + Z + 1]]
    norm = w.norm[w.rows[m + Z] : w.rows[m + Z + 1]]
    count = len(streams)
    numbers = np.empty((3, columns), dtype=np.float32)
    keys, queries = np.empty((count, rows), np.int64), np.empty((count, rows), np.int64)
    key_count, query_count = np.empty(count, np.int64), np.empty(count, np.int64)
    first = w.head_start[layer]
    for index in range(first, w.head_start[layer + 1]):
        head = w.heads[index]
        width = head[VALUE_END] - head[VALUE]
        low, high = head[OFFSET], head[OFFSET] + head[ROWS] * width
        read, value, held = numbers[0, :width], numbers[1, :width], numbers[2, :width]
        _find_rows(mixed, tile, head[KEY], head[KEY_END], count, keys, key_count)
        open_columns = _open_columns(gate, tile, head[GATES], head[GATES_END])
        if open_columns:
            _find_rows(mixed, tile, head[QUERY], head[QUERY_END], count, queries, query_count)
        for t in range(count):
            memory = s.memory[streams[t], low:high].reshape(head[ROWS], width)
            strength = beta[index - first, t]
            if strength != ZERO:
                for c in range(width):
                    value[c] = mixed[head[VALUE] + c, t]
                found = keys[t, : key_count[t]]
                _write(memory, slot, found, mixed, t, strength, value, held)
            if not open_columns >> t & 1:
                # What the head reads for this token is multiplied with 0 everywhere.
                continue
            found = queries[t, : query_count[t]]
            _query(memory, slot, found, mixed, t, root, read)
            _normalise(read, columns, w.epsilon[0])
            for z in range(head[GATES], head[GATES_END]):
                if gate[z, t] != ZERO:
                    gate[z, t] = (norm[z] * read[z_slot[z]]) * _silu(gate[z, t])
    round_bf16(gate)


@compiled
def _open_columns(gate: Array, tile: tuple[None, ...], low: int, high: int) -> int:
    """Bit t for each column t that holds a number other than 0 in the rows low to high - 1."""
    if len(tile) > 1:
        return int(columns_in_rows(gate, low, high))
    for z in range(low, high):
        if gate[z, 0] != ZERO:
            return 1
    return 0


@compiled
def _normalise(read: Array, columns: int, epsilon: np.float32) -> None:
    """The heads' norm without its weight; columns that are not there are 0."""
    total = ZERO
    for c in range(len(read)):
        total += read[c] * read[c]
    scale = ONE / np.sqrt(total / np.float32(columns) + epsilon)
    for c in range(len(read)):
        read[c] = read[c] * scale
    round_bf16(read)


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
    sums: Array,
) -> None:
    m = MATRICES * layer
    mixed = buffers[0, : w.rows[m + QKV + 1] - w.rows[m + QKV]]
    gate = buffers[1, : w.rows[m + Z + 1] - w.rows[m + Z]]
    beta = buffers[2, : w.head_start[layer + 1] - w.head_start[layer]]
    _product(w, tile, m + QKV, normed, mixed)
    _convolve(w, s, streams, layer, mixed)
    _silu_all(mixed, tile)
    _product(w, tile, m + Z, normed, gate)
    round_bf16(gate)
    _product(w, tile, m + BETA, normed, beta)
    round_bf16(beta)
    flat = beta.reshape(-1)
    for i in range(len(flat)):
        flat[i] = ONE / (ONE + np.float32(math.exp(-flat[i])))
    round_bf16(beta)
    _read_heads(w, s, tile, streams, layer, mixed, beta, gate)
    _add_product(w, tile, m + OUT, gate, x, sums)


@compiled
def _mlp(
    w: Weights,
    tile: tuple[None, ...],
    layer: int,
    x: Array,
    normed: Array,
    buffers: Array,
    sums: Array,
) -> None:
    m = MATRICES * layer
    neurons = w.rows[m + GATE + 1] - w.rows[m + GATE]
    gate, up = buffers[0, :neurons], buffers[1, :neurons]
    _product(w, tile, m + GATE, normed, gate)
    _silu_all(gate, tile)
    _product(w, tile, m + UP, normed, up)
    _multiply(gate, up)
    _add_product(w, tile, m + DOWN, gate, x, sums)


@compiled
def _embed(w: Weights, tokens: Array, x: Array) -> None:
    """x [hidden, columns]: the embedding of a token in each column, 0 in those left over."""
    x[:] = ZERO
    for t in range(len(tokens)):
        for k in range(w.token_start[tokens[t]], w.token_start[tokens[t] + 1]):
            x[w.token_column[k], t] = w.token_value[k]


@compiled
def _through_layers(
    w: Weights,
    s: State,
    tile: tuple[None, ...],
    streams: Array,
    width: int,
    x: Array,
    first: int,
    last: int,
) -> None:
    """Takes a tile through layers first to last - 1; its columns are of the streams numbered."""
    epsilon = w.epsilon[0]
    buffers = np.empty((3, width, len(tile)), dtype=np.float32)
    scales = np.empty((1, len(tile)), dtype=np.float32)
    sums = np.empty(x.shape, dtype=np.float32)
    normed = np.empty(x.shape, dtype=np.float32)
    for layer in range(first, last):
        _norm(x, tile, w.gains[2 * layer], epsilon, scales, normed)
        _mixer(w, s, tile, streams, layer, x, normed, buffers, sums)
        _norm(x, tile, w.gains[2 * layer + 1], epsilon, scales, normed)
        _mlp(w, tile, layer, x, normed, buffers, sums)


@compiled
def _write_codes(w: Weights, tile: tuple[None, ...], x: Array, codes: Array) -> None:
    scales = np.empty((1, len(tile)), dtype=np.float32)
    _scales(x, tile, w.epsilon[0], scales)
    for t in range(len(codes)):
        for i in range(len(w.code)):
            codes[t, i] = (x[w.code[i], t] * scales[0, t]) * w.final_gain[i]
    round_bf16(codes)


@compiled
def _read_tile(
    w: Weights,
    s: State,
    tile: tuple[None, ...],
    tokens: Array,
    streams: Array,
    width: int,
    codes: Array,
) -> None:
    """Reads at most as many tokens as `tile` is long."""
    x = np.empty((w.sizes[0], len(tile)), dtype=np.float32)
    _embed(w, tokens, x)
    _through_layers(w, s, tile, streams, width, x, 0, len(w.head_start) - 1)
    _write_codes(w, tile, x, codes)


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
        if len(tokens) - low < WHOLE_TILE:
            high = low + 1
            part = codes[low:high]
            _read_tile(w, s, ONE_TOKEN, tokens[low:high], streams[low:high], width, part)
        else:
            high = min(low + TILE, len(tokens))
            part = codes[low:high]
            _read_tile(w, s, TOKENS, tokens[low:high], streams[low:high], width, part)
        low = high


@compiled
def forward_part(
    w: Weights,
    s: State,
    tokens: Array,
    streams: Array,
    width: int,
    x: Array,
    first: int,
    last: int,
    codes: Array,
) -> None:
    """`forward` through layers first to last - 1 alone; touches only their states.

    Args:
        x: float32 [tiles, hidden, TILE], what is between the layers; filled from the tokens if
            `first` is 0.
        codes: filled if `last` is the number of layers.
    """
    for i in range(len(x)):
        low, high = i * TILE, min(i * TILE + TILE, len(tokens))
        if first == 0:
            _embed(w, tokens[low:high], x[i])
        _through_layers(w, s, TOKENS, streams[low:high], width, x[i], first, last)
        if last == len(w.head_start) - 1:
            _write_codes(w, TOKENS, x[i], codes[low:high])


@compiled
def copy_stream(source: State, places: Array, target: State, stream: int, used: bool) -> None:
    """Makes a stream of `target` a copy of the first one of `source`.

    Most numbers of a state are 0: memory of a new state that only holds these is not touched.

    Args:
        places: int64, where the numbers of `source.memory` are that are not 0.
        used: whether the stream holds anything else yet.
    """
    memory = target.memory[stream]
    if used:
        memory[:] = ZERO
    for place in places:
        memory[place] = source.memory[0, place]
    target.window[stream] = source.window[0]


@compiled
def best_two(w: Weights, code: Array) -> tuple[int, np.float32, np.float32]:
    """The first of the largest logits, it, and the second largest."""
    plain = len(w.signs) > 0
    pattern = np.uint32(0)
    for d in range(len(code)):
        plain &= abs(code[d]) == ONE
        if code[d] > ZERO:
            pattern |= np.uint32(1) << np.uint32(d)
    if plain:
        return _nearest_two(w.signs, pattern, len(code))
    return _largest_two(w, code)


@compiled
def _nearest_two(signs: Array, pattern: np.uint32, bits: int) -> tuple[int, np.float32, np.float32]:
    """`best_two` where code and output head hold only 1 and -1.

    A logit is the number of signs that agree less those that differ, exact in bf16.
    """
    best, least, second = 0, np.uint32(64), np.uint32(64)
    differing = np.empty(CHUNK, dtype=np.uint32)
    for low in range(0, len(signs), CHUNK):
        size = min(CHUNK, len(signs) - low)
        part = signs[low : low + size]
        nearest = np.uint32(64)
        for i in range(size):
            x = part[i] ^ pattern
            x = x - ((x >> np.uint32(1)) & np.uint32(0x55555555))
            x = (x & np.uint32(0x33333333)) + ((x >> np.uint32(2)) & np.uint32(0x33333333))
            x = (x + (x >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
            x = np.uint32(x * np.uint32(0x01010101)) >> np.uint32(24)
            differing[i] = x
            nearest = min(nearest, x)
        if nearest >= second:
            continue
        for i in range(size):
            if differing[i] < least:
                best, second, least = low + i, least, differing[i]
            elif differing[i] < second:
                second = differing[i]
    return best, np.float32(bits - 2 * np.int64(least)), np.float32(bits - 2 * np.int64(second))


@compiled
def _largest_two(w: Weights, code: Array) -> tuple[int, np.float32, np.float32]:
    """The first of the largest logits, it, and the second largest."""
    best, top, second = 0, np.float32(-np.inf), np.float32(-np.inf)
    tokens = w.logits.shape[1]
    sums = np.empty(CHUNK, dtype=np.float32)
    weights = np.empty(CHUNK, dtype=np.float32)
    bits = weights.view(np.uint32)
    for low in range(0, tokens, CHUNK):
        size = min(CHUNK, tokens - low)
        sums[:] = ZERO
        for d in range(len(code)):
            row = w.logits[d, low : low + size]
            factor = code[d]
            for i in range(size):
                bits[i] = np.uint32(row[i]) << np.uint32(16)
            for i in range(size):
                sums[i] += weights[i] * factor
        round_bf16(sums)
        largest = sums[0]
        for i in range(size):
            largest = max(largest, sums[i])
        if largest <= second:
            continue
        for i in range(size):
            if sums[i] > top:
                best, second, top = low + i, top, sums[i]
            elif sums[i] > second:
                second = sums[i]
    return best, top, second
