"""What each kernel must compute, written a second time in numpy.

Every function takes inputs of the launch spec by name (arrays as numpy arrays of their type,
scalars as Python integers; a pure output is an array of zeros) and returns its outputs. The
functions avoid the kernels' algorithms where they can: sorting is ``np.sort``, a scan is
``np.cumsum``, CRC-32 comes from ``zlib``.
"""

from __future__ import annotations

import inspect
import math
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Outputs = dict[str, Any]
Function = Callable[..., Outputs]

EXPECTED: dict[str, Function] = {}

DTYPES: dict[str, Any] = {
    "s8": np.int8,
    "u8": np.uint8,
    "s16": np.int16,
    "u16": np.uint16,
    "s32": np.int32,
    "u32": np.uint32,
    "s64": np.int64,
    "u64": np.uint64,
}


def kernel(function: Function) -> Function:
    """Enter a function in the table under its name, which is the kernel's."""
    EXPECTED[function.__name__.rstrip("_")] = function
    return function


def expected_results(spec: dict[str, Any]) -> dict[str, Array]:
    """Outputs of the kernel of a launch spec, in the order of its arguments."""
    inputs: dict[str, Any] = {}
    outputs: dict[str, Array] = {}
    for arg in spec["args"]:
        name, dtype = arg["name"], DTYPES[arg["type"].rstrip("*")]
        if "values" in arg:
            inputs[name] = np.array(arg["values"], dtype=dtype)
        elif "length" in arg:
            inputs[name] = np.zeros(arg["length"], dtype=dtype)
        else:
            inputs[name] = int(arg["value"])
        if arg.get("output"):
            outputs[name] = inputs[name].copy()
    function = EXPECTED[spec["kernel"]]
    results = function(**{name: inputs[name] for name in inspect.signature(function).parameters})
    if results.keys() != outputs.keys():
        raise ValueError(f"{spec['kernel']}: outputs {list(results)} instead of {list(outputs)}")
    return {name: wrap(results[name], zeros) for name, zeros in outputs.items()}


def wrap(values: Any, like: Array) -> Array:
    """Values modulo 2^bits in the type and length of `like`."""
    # Objects, as numpy would make one list of large and small numbers floating point.
    flat = [int(v) for v in np.ravel(np.array(values, dtype=object))]
    if len(flat) != len(like):
        raise ValueError(f"{len(flat)} results for an array of {len(like)}")
    bits = 8 * like.dtype.itemsize
    unsigned = np.array([v % 2**bits for v in flat], dtype=np.uint64)
    return unsigned.astype(f"u{like.dtype.itemsize}").view(like.dtype)


def wide(array: Array) -> Array:
    """The same numbers as Python integers, which neither wrap nor overflow."""
    return array.astype(object)


def unsigned(array: Array) -> Array:
    """The same bits read as unsigned numbers, as Python integers."""
    return wide(array.view(f"u{array.dtype.itemsize}"))


def per_element(function: Callable[..., Any], *arrays: Array) -> list[Any]:
    """Apply a function of Python integers to each row of elements."""
    return [function(*(int(v) for v in row)) for row in zip(*arrays, strict=True)]


# elementwise


@kernel
def vector_add(a: Array, b: Array, n: int) -> Outputs:
    return {"c": a[:n] + b[:n]}


@kernel
def saxpy(a: int, x: Array, y: Array) -> Outputs:
    return {"y": a * wide(x) + wide(y)}


@kernel
def abs_diff(a: Array, b: Array) -> Outputs:
    return {"c": np.abs(a - b)}


@kernel
def clamp(x: Array, low: int, high: int) -> Outputs:
    return {"y": np.clip(x, low, high)}


@kernel
def polynomial(x: Array, coef: Array) -> Outputs:
    c0, c1, c2, c3 = wide(coef)
    v = wide(x)
    return {"y": c0 + c1 * v + c2 * v**2 + c3 * v**3}


@kernel
def select(mask: Array, a: Array, b: Array) -> Outputs:
    return {"c": np.where(mask, a, b)}


@kernel
def saturating_add(a: Array, b: Array) -> Outputs:
    return {"c": np.clip(a.astype(np.int64) + b, -(2**31), 2**31 - 1)}


@kernel
def bit_tricks(x: Array) -> Outputs:
    bits = [format(v, "032b") for v in unsigned(x)]
    lowest = [1 << (31 - b.rindex("1")) if "1" in b else 0 for b in bits]
    return {
        "lowest": lowest,
        "power_of_two": [b.count("1") == 1 for b in bits],
        "sign": np.sign(x),
    }


@kernel
def grid_stride_square(x: Array) -> Outputs:
    return {"y": x**2}


@kernel
def reverse_copy(x: Array) -> Outputs:
    return {"y": x[::-1]}


# reduce


@kernel
def dot(a: Array, b: Array) -> Outputs:
    return {"result": [np.dot(a, b)]}


@kernel
def tree_sum(x: Array) -> Outputs:
    return {"sum": [x.sum()]}


@kernel
def warp_sum(x: Array) -> Outputs:
    return {"sum": [x.sum()]}


@kernel
def atomic_sum(x: Array) -> Outputs:
    return {"sum": [x.sum()]}


@kernel
def min_max(x: Array) -> Outputs:
    return {"smallest": [x.min()], "largest": [x.max()]}


@kernel
def norm2(x: Array) -> Outputs:
    quarter = np.floor_divide(wide(x), 4)
    return {"norm": [(quarter**2).sum()]}


@kernel
def argmax(x: Array) -> Outputs:
    return {"where": [np.argmax(x)], "value": [x.max()]}


@kernel
def count_if(x: Array, low: int, high: int) -> Outputs:
    return {"count": [np.count_nonzero((x >= low) & (x < high))]}


@kernel
def block_sum(x: Array) -> Outputs:
    return {"sum": [x.sum()]}


@kernel
def row_max(m: Array, width: int) -> Outputs:
    return {"best": m.reshape(-1, width).max(axis=1)}


# scan


@kernel
def hillis_steele(x: Array) -> Outputs:
    return {"y": np.cumsum(x)}


@kernel
def blelloch(x: Array) -> Outputs:
    return {"y": np.cumsum(x) - x}


@kernel
def warp_scan(x: Array) -> Outputs:
    return {"y": np.cumsum(x)}


@kernel
def block_scan(x: Array) -> Outputs:
    return {"y": np.cumsum(x)}


@kernel
def compact(x: Array, kept: Array) -> Outputs:
    odd = x[x % 2 != 0]
    kept[: len(odd)] = odd
    return {"kept": kept, "count": [len(odd)]}


@kernel
def running_max(x: Array, width: int) -> Outputs:
    return {"y": np.maximum.accumulate(x.reshape(-1, width), axis=1)}


# matrix


@kernel
def matmul_naive(a: Array, b: Array, rows: int, inner: int, cols: int) -> Outputs:
    return {"c": a.reshape(rows, inner) @ b.reshape(inner, cols)}


@kernel
def matmul_tiled(a: Array, b: Array) -> Outputs:
    return {"c": a.reshape(8, 8) @ b.reshape(8, 8)}


@kernel
def matvec(m: Array, x: Array, cols: int) -> Outputs:
    return {"y": m.reshape(-1, cols) @ x}


@kernel
def outer_product(u: Array, v: Array) -> Outputs:
    return {"m": np.outer(u, v)}


@kernel
def transpose_naive(a: Array) -> Outputs:
    return {"b": a.reshape(6, 8).T}


@kernel
def transpose_shared(a: Array) -> Outputs:
    return {"b": a.reshape(8, 8).T}


@kernel
def int8_dot_rows(w: Array, x: Array) -> Outputs:
    return {"y": w.astype(int).reshape(8, 8) @ x.astype(int)}


@kernel
def trace(m: Array, n: int) -> Outputs:
    return {"sum": [np.trace(m.reshape(n, n))]}


# stencil


@kernel
def stencil_1d(x: Array) -> Outputs:
    return {"y": np.convolve(x, [1, 2, 1], mode="same")}


@kernel
def stencil_2d(x: Array) -> Outputs:
    a = x.reshape(6, 8)
    y = a.copy()
    y[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]
    return {"y": y}


@kernel
def game_of_life(cells: Array) -> Outputs:
    a = cells.reshape(8, 8).astype(int)
    shifts = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
    neighbours = sum(np.roll(a, s, axis=(0, 1)) for s in shifts)
    return {"after": (neighbours == 3) | ((a == 1) & (neighbours == 2))}


@kernel
def rule_110(cells: Array, steps: int) -> Outputs:
    for _ in range(steps):
        left, right = np.roll(cells, 1), np.roll(cells, -1)
        # Rule 110 in words: a cell is on if it or its right neighbour is on, but not all three.
        cells = ((cells | right) & ~(left & cells & right)).astype(np.int32)
    return {"after": cells}


@kernel
def window_sum(x: Array, n: int) -> Outputs:
    return {"y": [x[i : min(i + 4, n)].sum() for i in range(n)]}


# sort


@kernel
def bitonic_sort(x: Array) -> Outputs:
    return {"y": np.sort(x)}


@kernel
def odd_even_sort(x: Array) -> Outputs:
    return {"x": np.sort(x)}


@kernel
def rank_sort(x: Array) -> Outputs:
    return {"y": np.sort(x)}


@kernel
def counting_sort(keys: Array) -> Outputs:
    return {"sorted": np.sort(keys)}


@kernel
def insertion_sort(x: Array) -> Outputs:
    return {"x": np.sort(x.reshape(-1, 6), axis=1)}


@kernel
def merge_sorted(a: Array, b: Array) -> Outputs:
    return {"c": np.sort(np.concatenate([a, b]))}


# histogram


@kernel
def histogram_global(x: Array) -> Outputs:
    return {"bins": np.bincount(x % 8, minlength=8)}


@kernel
def histogram_shared(x: Array) -> Outputs:
    return {"bins": np.bincount(x, minlength=16)}


@kernel
def letter_counts(text: Array) -> Outputs:
    return {"vowels": [text.tobytes().count(v) for v in b"aeiou"]}


# number


@kernel
def gcd(a: Array, b: Array) -> Outputs:
    return {"c": per_element(math.gcd, a, b)}


@kernel
def binary_gcd(a: Array, b: Array) -> Outputs:
    return {"c": per_element(math.gcd, a, b)}


@kernel
def sieve(composite: Array, n: int) -> Outputs:
    return {"composite": [m > 3 and any(m % d == 0 for d in range(2, m)) for m in range(n)]}


@kernel
def is_prime(x: Array) -> Outputs:
    return {"prime": [v > 1 and all(v % d for d in range(2, v)) for v in x.tolist()]}


@kernel
def collatz(x: Array) -> Outputs:
    def steps(v: int) -> int:
        return 0 if v == 1 else 1 + steps(3 * v + 1 if v % 2 else v // 2)

    return {"steps": per_element(steps, x)}


@kernel
def fibonacci(f: Array) -> Outputs:
    step = np.array([[1, 1], [1, 0]], dtype=object)
    return {"f": [np.linalg.matrix_power(step, t)[0, 1] for t in range(len(f))]}


@kernel
def isqrt(x: Array) -> Outputs:
    return {"root": per_element(math.isqrt, x)}


@kernel
def pow_mod(base: Array, exponent: Array, modulus: int) -> Outputs:
    return {"result": per_element(lambda b, e: pow(b, e, modulus), base, exponent)}


@kernel
def div_rem_signed(a: Array, b: Array) -> Outputs:
    def quotient(x: int, y: int) -> int:
        q = abs(x) // abs(y)
        return q if (x < 0) == (y < 0) else -q

    q = per_element(quotient, a, b)
    return {"q": q, "r": [x - y * k for x, y, k in zip(a.tolist(), b.tolist(), q, strict=True)]}


@kernel
def div_rem_unsigned(a: Array, b: Array) -> Outputs:
    return {"q": a // b, "r": a % b}


@kernel
def div_const(a: Array) -> Outputs:
    v = a.astype(np.int64)
    return {
        "by7": np.sign(v) * (np.abs(v) // 7),
        "mod10": np.fmod(v, 10),
        "by16": np.sign(v) * (np.abs(v) // 16),
        "umod1000": unsigned(a) % 1000,
    }


@kernel
def digit_sum(x: Array) -> Outputs:
    return {"sum": [sum(map(int, str(v))) for v in x.tolist()]}


@kernel
def binomial_row(row: Array, n: int) -> Outputs:
    return {"row": [math.comb(n, k) for k in range(len(row))]}


# bits


@kernel
def popcount(x: Array) -> Outputs:
    count = [v.bit_count() for v in x.tolist()]
    return {"count": count, "swar": count}


@kernel
def bit_reverse(x: Array) -> Outputs:
    result = [int(format(v, "032b")[::-1], 2) for v in x.tolist()]
    return {"fast": result, "slow": result}


@kernel
def clz_ffs(x: Array) -> Outputs:
    u = unsigned(x).tolist()
    return {
        "clz": [32 - v.bit_length() for v in u],
        "ffs": [(v & -v).bit_length() for v in u],
    }


@kernel
def byte_perm(a: Array, b: Array, selector: int) -> Outputs:
    pairs = np.stack([a, b], axis=1).view(np.uint8)

    def pick(*places: int) -> Array:
        return np.ascontiguousarray(pairs[:, list(places)]).view(np.uint32)

    chosen = [selector >> (4 * k) & 7 for k in range(4)]
    return {"swapped": a.byteswap(), "mixed": pick(0, 1, 4, 5), "chosen": pick(*chosen)}


@kernel
def mulhi(a: Array, b: Array) -> Outputs:
    return {"s": wide(a) * wide(b) // 2**32, "u": unsigned(a) * unsigned(b) // 2**32}


@kernel
def funnel_shift(low: Array, high: Array, shift: Array) -> Outputs:
    pair = wide(high) * 2**32 + wide(low)
    twice = wide(low) * 2**32 + wide(low)
    n = wide(shift % 32)
    return {"left": pair * 2**n // 2**32, "right": pair // 2**n, "rotated": twice * 2**n // 2**32}


@kernel
def gray_code(x: Array) -> Outputs:
    return {"gray": x ^ (x // 2), "back": x}


@kernel
def morton(x: Array, y: Array) -> Outputs:
    # The binary digits of a number, read in base 4, are its bits at the even places.
    return {"code": per_element(lambda p, q: int(f"{p:b}", 4) + 2 * int(f"{q:b}", 4), x, y)}


@kernel
def shifts(x: Array, by: Array) -> Outputs:
    power = 2 ** wide(by)
    return {
        "left": wide(x) * power,
        "logical": unsigned(x) // power,
        "arithmetic": wide(x) // power,
    }


# hash


def rows_of_bytes(text: Array, width: int) -> list[bytes]:
    return [row.tobytes() for row in text.reshape(-1, width)]


@kernel
def crc32_bitwise(text: Array) -> Outputs:
    return {"crc": [zlib.crc32(row) for row in rows_of_bytes(text, 4)]}


@kernel
def crc32_table(text: Array) -> Outputs:
    return {"crc": [zlib.crc32(row) for row in rows_of_bytes(text, 8)]}


@kernel
def xorshift(state: Array, steps: int) -> Outputs:
    # The generator is linear over the bits: apply the images of the 32 unit vectors.
    def once(v: int) -> int:
        v ^= v << 13 & 0xFFFFFFFF
        v ^= v >> 17
        return v ^ (v << 5 & 0xFFFFFFFF)

    images = [once(1 << bit) for bit in range(32)]
    states = state.tolist()
    for _ in range(steps):
        states = [
            int(np.bitwise_xor.reduce([images[b] for b in range(32) if v >> b & 1])) for v in states
        ]
    return {"state": states}


@kernel
def lcg(seed: Array) -> Outputs:
    # Closed form: x_k = a^k x + c (a^k - 1) / (a - 1).
    a, c = 1664525, 1013904223
    steps = [(a**k, c * (a**k - 1) // (a - 1)) for k in range(1, 5)]
    return {"numbers": [(p * s + q) % 2**32 >> 8 for p, q in steps for s in seed.tolist()]}


@kernel
def fnv1a(text: Array, length: int) -> Outputs:
    h = np.full(len(text) // length, 2166136261, dtype=np.uint32)
    for column in text.reshape(-1, length).T:
        h = (h ^ column) * np.uint32(16777619)
    return {"hash": h}


@kernel
def adler32(text: Array) -> Outputs:
    return {"sum": [zlib.adler32(row) for row in rows_of_bytes(text, 8)]}


@kernel
def murmur_mix(x: Array) -> Outputs:
    v = x
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        v = (v ^ (v >> np.uint32(shift))) * np.uint32(factor)
    return {"h": v}


# search


@kernel
def binary_search(table: Array, query: Array) -> Outputs:
    return {"place": np.searchsorted(table, query, side="left")}


@kernel
def linear_search(x: Array, value: int) -> Outputs:
    return {"place": [[*x.tolist(), value].index(value) if value in x else -1]}


@kernel
def substring(text: Array, n: int, pattern: Array, m: int) -> Outputs:
    data = text.tobytes()
    return {"match": [data[i : i + m] == pattern.tobytes() for i in range(n)]}


@kernel
def list_walk(next: Array, value: Array, head: Array) -> Outputs:
    def path(at: int) -> list[int]:
        return [] if at < 0 else [at, *path(int(next[at]))]

    paths = per_element(path, head)
    return {"sum": [sum(value[i] for i in p) for p in paths], "length": [len(p) for p in paths]}


# bytes


@kernel
def to_upper(text: Array) -> Outputs:
    return {"text": list(text.tobytes().upper())}


@kernel
def caesar(text: Array, key: int) -> Outputs:
    letters = bytes(range(ord("a"), ord("z") + 1))
    table = bytes.maketrans(letters, letters[key:] + letters[:key])
    return {"cipher": list(text.tobytes().translate(table))}


@kernel
def string_length(text: Array) -> Outputs:
    return {"length": [row.index(0) for row in rows_of_bytes(text, 8)]}


@kernel
def parse_int(text: Array) -> Outputs:
    words = [row.rstrip(b"\0").decode().rstrip("x") for row in rows_of_bytes(text, 8)]
    return {"value": [int(word) for word in words]}


@kernel
def hex_text(x: Array) -> Outputs:
    return {"text": list("".join(f"{v:08x}" for v in x.tolist()).encode())}


@kernel
def brighten(pixels: Array, amount: int) -> Outputs:
    return {"result": np.clip(pixels.astype(int) + amount, 0, 255)}


@kernel
def average_u16(a: Array, b: Array) -> Outputs:
    return {"c": np.ceil((a.astype(np.float64) + b) / 2).astype(int)}


@kernel
def mul_s16(a: Array, b: Array) -> Outputs:
    return {"low": wide(a) * wide(b), "full": a.astype(np.int32) * b}


@kernel
def palindrome(text: Array) -> Outputs:
    return {"yes": [row == row[::-1] for row in rows_of_bytes(text, 8)]}


# wide


@kernel
def sum64(a: Array, b: Array) -> Outputs:
    return {"sum": wide(a) + wide(b), "difference": wide(a) - wide(b)}


@kernel
def mul64(a: Array, b: Array) -> Outputs:
    low_a, low_b = (v.view(np.int32)[::2] for v in (a, b))
    return {"product": wide(a) * wide(b), "wide": wide(low_a) * wide(low_b)}


@kernel
def shift64(x: Array, by: Array) -> Outputs:
    power = 2 ** wide(by)
    return {
        "left": wide(x) * power,
        "logical": unsigned(x) // power,
        "arithmetic": wide(x) // power,
    }


@kernel
def compare64(a: Array, b: Array) -> Outputs:
    return {
        "order": [(x > y) - (x < y) for x, y in zip(a.tolist(), b.tolist(), strict=True)],
        "low": np.minimum(a, b),
        "high": np.maximum(a.view(np.uint64), b.view(np.uint64)),
    }


@kernel
def lcg64(state: Array) -> Outputs:
    a, c = 6364136223846793005, 1442695040888963407
    states = [(a**3 * s + c * (a**2 + a + 1)) % 2**64 for s in state.tolist()]
    return {"state": states, "number": [s // 2**32 for s in states]}


@kernel
def bits64(x: Array) -> Outputs:
    digits = [format(v, "064b") for v in x.tolist()]
    return {
        "ones": [d.count("1") for d in digits],
        "zeros": [(d + "1").index("1") for d in digits],
        "reversed": [int(d[::-1], 2) for d in digits],
    }


# warp


@kernel
def shuffle_up(x: Array, by: int) -> Outputs:
    return {"y": np.concatenate([x[:by], x[:-by]])}


@kernel
def shuffle_down(x: Array) -> Outputs:
    groups = x.reshape(-1, 8)
    return {"y": np.concatenate([groups[:, 2:], groups[:, 6:]], axis=1)}


@kernel
def shuffle_xor(x: Array) -> Outputs:
    return {"y": np.full(32, x.max())}


@kernel
def shuffle_idx(x: Array, source: Array) -> Outputs:
    return {"permuted": x[source], "broadcast": np.full(32, x[5])}


@kernel
def shuffle_half(x: Array) -> Outputs:
    return {"y": np.concatenate([x[:16] + x[15::-1], x[16:]])}


def ballot(answers: Array) -> int:
    return sum(1 << i for i, yes in enumerate(answers) if yes)


@kernel
def vote_ballot(x: Array) -> Outputs:
    return {"votes": [ballot(x[:32] > 0), ballot(x[32:] > 0)]}


@kernel
def vote_any_all(x: Array, limit: int) -> Outputs:
    answer = np.any(x > limit) + 2 * np.all(x > 0) + 4 * np.all(x < 0)
    return {"y": np.full(32, answer)}


@kernel
def active_lanes(x: Array) -> Outputs:
    return {"masks": np.where(x < 0, ballot(x < 0), 0xFFFFFFFF)}


@kernel
def short_warp(x: Array) -> Outputs:
    return {"votes": [ballot(x < 0)], "left": np.roll(x, 1)}


@kernel
def sync_warp(x: Array) -> Outputs:
    lane = np.arange(64)
    return {"y": x[lane ^ 1] - x[lane ^ 16]}


# atomics


@kernel
def atomic_tickets(drawn: Array) -> Outputs:
    return {"counter": [len(drawn)], "drawn": 100 + np.arange(len(drawn))}


@kernel
def atomic_min_max(x: Array) -> Outputs:
    u = unsigned(x)
    return {"bounds": [x.min(), x.max()], "ubounds": [u.min(), u.max()]}


@kernel
def atomic_inc_dec(down: Array, seen: Array) -> Outputs:
    threads = 24
    return {
        "up": [threads % 10],
        # 3, 2, 1, 0, then 6 ... 0 again and again.
        "down": [(int(down[0]) - threads) % 7],
        "seen": np.bincount(np.arange(threads) % 10, minlength=len(seen)),
    }


@kernel
def atomic_bits(x: Array, sets: Array) -> Outputs:
    return {
        "sets": [
            np.bitwise_and.reduce(x | np.uint32(0x00F0F0F0)),
            np.bitwise_or.reduce(x & np.uint32(0x0FF00F0F)),
            np.bitwise_xor.reduce(x),
        ]
    }


@kernel
def atomic_exch(slots: Array, fresh: Array) -> Outputs:
    return {"slots": fresh, "old": slots}


@kernel
def atomic_cas_multiply(x: Array, product: Array) -> Outputs:
    return {"product": [math.prod(x.tolist()) * int(product[0])]}


@kernel
def atomic_shared(x: Array) -> Outputs:
    return {"result": [x.sum(), x.min(), x.max(), np.bitwise_or.reduce(x)]}


@kernel
def atomic_sub_sum64(x: Array, left: Array) -> Outputs:
    return {"left": left - (x % 64).sum(), "sum": [sum(x.tolist())]}


@kernel
def last_block(x: Array) -> Outputs:
    part = x.reshape(3, 8).sum(axis=1)
    return {"part": part, "done": [3], "sum": [part.sum()]}


# control


@kernel
def nested_divergence(x: Array) -> Outputs:
    lane = np.arange(32)
    odd = 1 + np.where(lane < 16, 3 * x, -x) + x + 10
    even = 2 + np.where(x > 10, 4 * x, 0) + x - 10
    return {"y": np.where(x % 2 == 1, odd, even)}


@kernel
def break_continue(x: Array) -> Outputs:
    rows = [row[: row.index(0)] if 0 in row else row for row in x.reshape(-1, 6).tolist()]
    return {"sum": [sum(v for v in row if v > 0) for row in rows]}


@kernel
def early_return(x: Array, y: Array, n: int) -> Outputs:
    for t, v in enumerate(x[:n].tolist()):
        if v < 0:
            y[t] = -1
        elif v in (0, 3, 6, 9):
            y[t] = 100 + v // 3
        else:
            y[t] = 4 * v
    return {"y": y}


@kernel
def switch_case(op: Array, a: Array, b: Array) -> Outputs:
    cases: dict[int, Callable[[int, int], int]] = {
        0: lambda x, z: x + z,
        1: lambda x, z: x - z,
        2: lambda x, z: x * z,
        3: lambda x, z: x << z,
        4: lambda x, z: -x ^ z,
        5: lambda x, z: x ^ z,
        6: lambda x, z: x > z,
        7: min,
    }
    return {"y": per_element(lambda k, x, z: cases[k](x, z) if k in cases else 999, op, a, b)}


@kernel
def function_call(x: Array) -> Outputs:
    first = x**3 + 1
    return {"y": np.where(first < 0, np.arange(16) ** 3 + first, first)}


@kernel
def nested_calls(a: Array, b: Array) -> Outputs:
    return {"q": a // b, "r": a % b}


@kernel
def triangle_loop(depth: int) -> Outputs:
    def total(t: int) -> int:
        pairs = [(i, j) for i in range(depth) for j in range((t + i) % 4)]
        return sum(((i + 1) * (j + t)) ^ j for i, j in pairs)

    return {"sum": [total(t) for t in range(16)]}


@kernel
def state_machine(text: Array) -> Outputs:
    return {"words": [len(row.split()) for row in rows_of_bytes(text, 12)]}


@kernel
def two_exits(x: Array) -> Outputs:
    def run(v: int) -> int:
        for n in range(6):
            if v % 8 == 5:
                return (n + 1000) * 10000 + v
            v = v * 5 // 7
            if v <= 3:
                return (n + 1) * 10000 + v
        return 6 * 10000 + v

    return {"y": per_element(run, x)}


# blocks


@kernel
def two_warps(x: Array) -> Outputs:
    return {"y": np.roll(x, 32) * 2 + 1}


@kernel
def four_warps_rotate(x: Array, by: int) -> Outputs:
    return {"y": np.roll(x, -2 * by)}


@kernel
def many_blocks() -> Outputs:
    return {"y": [b * 1000000 + t * 10000 + 408 for b in range(4) for t in range(8)]}


@kernel
def grid_2d() -> Outputs:
    y, x = np.indices((4, 12))
    return {"board": np.where((x + y) % 2, -1, 100 * y + x)}


@kernel
def block_3d() -> Outputs:
    bz, _, _, z, y, x = np.indices((2, 2, 1, 2, 3, 2))
    return {"y": z * 100 + y * 10 + x + bz * 1000 + 20000}


@kernel
def dynamic_shared(x: Array) -> Outputs:
    return {"x": x.reshape(2, 24)[:, ::-1]}


@kernel
def dynamic_shared_two(a: Array, b: Array) -> Outputs:
    return {"c": (a * b + np.arange(16) ** 2)[::-1]}


@kernel
def independent_barriers(x: Array) -> Outputs:
    v = np.concatenate([x[:32], 3 * x[32:64] + 1, 9 * x[64:] + 4])
    return {"y": v[::-1] - v}


# memory


@kernel
def copy_int4(x: Array) -> Outputs:
    return {"y": x.reshape(-1, 4)[:, ::-1]}


@kernel
def complex_multiply(a: Array, b: Array) -> Outputs:
    c = (a[::2] + 1j * a[1::2]) * (b[::2] + 1j * b[1::2])
    return {"c": np.stack([c.real, c.imag], axis=1).astype(int)}


@kernel
def gather_restrict(index: Array, table: Array) -> Outputs:
    return {"y": table[index]}


@kernel
def scatter(to: Array, x: Array) -> Outputs:
    return {"y": x[np.argsort(to)]}


@kernel
def local_stack(code: Array) -> Outputs:
    def run(program: list[int]) -> int:
        stack: list[int] = []
        for c in program[: program.index(0)]:
            if c > 0:
                stack.append(c)
            else:
                b, a = stack.pop(), stack.pop()
                stack.append({-1: a + b, -2: a - b, -3: a * b}[c])
        return stack[0]

    return {"result": [run(row) for row in code.reshape(-1, 8).tolist()]}


@kernel
def array_of_structs(particles: Array, dt: int) -> Outputs:
    p = particles.reshape(-1, 4)
    velocity = np.ascontiguousarray(p[:, 2]).view(np.int16).reshape(-1, 2)
    p[:, :2] += velocity.astype(np.int32) * dt
    p[:, 3] += 1
    return {"particles": p}


@kernel
def constant_weights(x: Array) -> Outputs:
    return {"y": np.correlate(x, [1, -2, 5], mode="valid")}


@kernel
def constant_lookup(x: Array) -> Outputs:
    return {"y": [v.bit_count() for v in x.tolist()]}


@kernel
def volatile_steps(x: Array) -> Outputs:
    return {"x": (x + 1) ** 2}


@kernel
def device_counter() -> Outputs:
    return {"first": [0, 1, 4, 9] * 4, "total": [1000 + sum(range(16))]}


@kernel
def generic_pointer(x: Array) -> Outputs:
    return {"y": np.where(np.arange(16) % 2, 10 * x[::-1], x)}


@kernel
def struct_param(p: int, x: Array) -> Outputs:
    scale, shift, limit = struct.unpack("<hhi", p.to_bytes(8, "little"))
    return {"y": np.minimum(x * scale + shift, limit)}


@kernel
def swap_halves(x: Array) -> Outputs:
    return {"x": x.view(np.uint16).reshape(-1, 2)[:, ::-1].copy().view(np.uint32)}


# expression: results wrap as the kernels' do, and `error` says that one did not fit


def fits(value: int) -> bool:
    """Whether a number fits a signed word."""
    return -(2**31) <= value < 2**31


def reported(values: list[int], error: int = 1) -> Outputs:
    """Results of a kernel with an error word."""
    return {"c": values, "error": [0 if all(map(fits, values)) else error]}


def binary(a: Array, b: Array, n: int) -> list[tuple[int, int]]:
    """Pairs of operands; one that is a scalar goes with all of the other."""
    return [(int(x), int(y)) for x, y in np.broadcast(np.resize(a, n), np.resize(b, n))]


@kernel
def checked_arithmetic(a: Array, b: Array, operation: int, n: int) -> Outputs:
    functions = [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y]
    return reported([functions[operation](x, y) for x, y in binary(a, b, n)])


@kernel
def checked_division(a: Array, b: Array, n: int) -> Outputs:
    values = [x // (y or 1) for x, y in binary(a, b, n)]
    return {"c": values, "rest": [0], "error": [0 if all(b) else 2]}


@kernel
def checked_power(a: Array, b: Array, n: int) -> Outputs:
    # A large exponent goes with a base of -1 or 1.
    return reported([x ** (y if abs(x) > 1 else y % 2 + 2 * (y > 0)) for x, y in binary(a, b, n)])


@kernel
def compare_numbers(a: Array, b: Array, n: int) -> Outputs:
    return {"c": [x <= y for x, y in binary(a, b, n)]}


@kernel
def combine_numbers(a: Array, b: Array, n: int) -> Outputs:
    return {"c": np.minimum(a, b)}


@kernel
def checked_shift(a: Array, b: Array, n: int) -> Outputs:
    return reported([x * 2**y for x, y in binary(a, b, n)])


@kernel
def common_divisor(a: Array, b: Array, n: int) -> Outputs:
    return reported([math.lcm(x, y) for x, y in binary(a, b, n)])


@kernel
def change_number(x: Array) -> Outputs:
    found = reported([abs(int(v)) for v in x])
    return {"y": found["c"], "error": found["error"]}


@kernel
def integer_root(x: Array) -> Outputs:
    return {"y": [math.isqrt(int(v)) for v in x], "error": [0]}


@kernel
def number_sequence(x: Array) -> Outputs:
    numbers = [0, 1]
    while len(numbers) <= 46:
        numbers.append(numbers[-1] + numbers[-2])
    return {"y": [numbers[min(v, 46)] for v in x], "error": [any(v > 46 for v in x)]}


@kernel
def prime_test(x: Array) -> Outputs:
    def is_prime(v: int) -> bool:
        return v > 1 and all(v % d for d in range(2, math.isqrt(v) + 1))

    return {"y": [is_prime(int(v)) for v in x]}


@kernel
def choose_number(a: Array, b: Array, c: Array) -> Outputs:
    return {"d": np.clip(a, b[0], c[0])}


@kernel
def checked_sum(x: Array, count: int) -> Outputs:
    total = sum(map(int, x))
    quotient = abs(total) // count * (1 if total > 0 else -1)
    return {"y": [quotient], "rest": [total - quotient * count], "error": [not fits(total)]}


@kernel
def checked_product(x: Array, count: int) -> Outputs:
    found = reported([math.prod(map(int, column)) for column in x.reshape(count, -1).T])
    return {"y": found["c"], "error": found["error"]}


@kernel
def find_extreme(x: Array, count: int) -> Outputs:
    return {"y": np.argmax(x.reshape(-1, count), axis=1)}


@kernel
def matrix_product(a: Array, b: Array, inner: int, cols: int) -> Outputs:
    found = wide(a.reshape(-1, inner)) @ wide(b.reshape(inner, cols))
    return reported(found.ravel().tolist())


@kernel
def running_total(x: Array) -> Outputs:
    # The first sum that does not fit has wrapped, and the next ones start from there.
    totals = np.cumsum(wide(x)).tolist()
    return {"y": totals, "error": [not all(map(fits, totals))]}


@kernel
def rank_order(x: Array) -> Outputs:
    return {"y": np.sort(x)[::-1]}


@kernel
def rearrange(x: Array, cols: int) -> Outputs:
    return {"y": x.reshape(cols, -1).T}


@kernel
def count_up(first: Array, step: Array, n: int) -> Outputs:
    return {"y": [int(first[0]) + i * int(step[0]) for i in range(n)]}
