"""What bf16 keeps exact, and the constants that make a Qwen3.5 layer compute with it.

bf16 holds 8 significant bits: integers to 256. Matrix products accumulate in fp32 and round once.
All magnitudes here are chosen so that every value a layer hands on is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

GATE_SCALE = 128.0
"""Gates are multiplied by this. silu(128 n) is 128 n for n >= 1 and underflows to 0 for n <= -1
(128 e^-128 is below the smallest fp32 number), so a neuron is exactly 128 relu(n)."""

EXACT_INTEGER = 256
"""Integers up to this are exact in bf16, and so are 128 times them."""

KEY_SCALE = 128.0
"""Address decoders give 128 on the addressed row and at most -128 elsewhere, whose silu is 0."""

WRITE_LOGIT = 128.0
"""sigmoid(128) is 1 and sigmoid(-128) is 0, exactly, in fp32: a write is whole or none."""

READ_SCALE = 32.0
"""silu(32) is 32 in fp32; the output projection divides by it again."""

DECAY_LOG = -60.0
"""A_log: the state decays by exp(-e^-60 softplus(0)) = 1 a token."""

VALUE_ZERO = -157 / 128
VALUE_STEP = 215 / 128
"""Inputs of a value's SiLU: VALUE_ZERO for a 0, VALUE_ZERO + VALUE_STEP for a 1. In bf16 the two
results are -142/512 and 142/512, so that every row of a memory has the same norm and reads back
as exactly -1 and +1. All of VALUE_ZERO, VALUE_STEP and VALUE_ZERO + VALUE_STEP/2 are bf16."""

GATHER_VALUE = 64.0
"""A 1 in a gathered row: far above the norm's epsilon however many rows are read at once."""


MUTE_GAIN = 2.0**32
MUTE_WEIGHT = -(2.0**40)
"""Gain of a circuit layer's norms on `text_gate`, and weight of every gate, read gate and write
strength on it. A text token holds at least 2**-8 there: they are below -2**64 / rms plus what they
read of the text, and the SiLU (or sigmoid) of that is exactly 0 in bf16 and fp32. The largest
embedding does not come near."""

HEAD_GAIN = 2.0**120
"""Final norm's gain on the marks of the two heads, where a text token holds 2**-70 and -2**-70.
Logits of GPU tokens on text, and of text tokens on GPU tokens, are lowered by 2**50 / rms; those of
a text token on text move all together by 2**-19 / rms."""


def round_bf16(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Each element rounded to the nearest bf16 number, ties to even, as float32."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    result: np.ndarray[Any, Any] = rounded.view(np.float32)
    return result


def bf16(x: float) -> float:
    """The bf16 number nearest to x."""
    return float(round_bf16(np.array([x]))[0])


def is_bf16(x: float) -> bool:
    """Whether bf16 holds x exactly."""
    return bf16(x) == x


@dataclass(frozen=True)
class Anchor:
    """How RMSNorm is made the identity on GPU tokens.

    The anchor dimension holds `value`, so large that it alone decides the RMS; every other
    dimension's gain brings it back to what it was.

    Attributes:
        value: M, in the anchor dimension of every GPU token's embedding.
        weight: stored norm weight (gain - 1) of ordinary circuit dimensions.
        error: relative error of the identity.
    """

    value: float
    weight: float
    error: float


@lru_cache
def find_anchor(hidden_size: int) -> Anchor:
    """The best anchor of a width: bf16 numbers with gain * sqrt(width) = value.

    M near 1e5 leaves room for squares of live dimensions up to about 1e-3 M**2 in sum before a
    number other than a small integer could round differently.
    """
    best = Anchor(0.0, 0.0, 1.0)
    root = math.sqrt(hidden_size)
    for exponent in range(10, 13):
        for mantissa in range(128, 256):
            weight = mantissa * 2.0 ** (exponent - 7)
            exact = (1.0 + weight) * root
            value = bf16(exact)
            error = abs(exact / value - 1.0)
            if 60_000 < value < 250_000 and error < best.error:
                best = Anchor(value, weight, error)
    return best


def gather_gate(rows: int, columns: int) -> tuple[float, float]:
    """The input of z that brings a gathered 1 to a power of two exactly, and that power.

    Reading `rows` rows with one 1 each, the head's norm gives a 1 the value sqrt(columns / rows),
    rounded to bf16; z's SiLU is the identity in fp32 from 24 on.
    """
    normed = bf16(math.sqrt(columns / rows))
    for target in (64.0, 128.0, 256.0, 512.0):
        for exponent in range(4, 8):
            for mantissa in range(128, 256):
                gate = mantissa * 2.0 ** (exponent - 7)
                if gate >= 24.0 and bf16(normed * gate) == target:
                    return gate, target
    raise ValueError(f"no bf16 gate brings {normed} to a power of two")
