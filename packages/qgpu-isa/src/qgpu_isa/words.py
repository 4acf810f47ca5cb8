"""32-bit words as Python integers from 0 to 2**32 - 1."""

from __future__ import annotations

from qgpu_isa.machine_config import WORD_BITS, WORD_MASK


def wrap(value: int) -> int:
    """The word congruent to `value` modulo 2**32."""
    return value & WORD_MASK


def signed(word: int) -> int:
    """The word read as two's complement."""
    return word - (1 << WORD_BITS) if word >> (WORD_BITS - 1) else word


def extended(value: int, bits: int) -> int:
    """The low bits of a value, their top bit repeated in front of them."""
    top = 1 << bits - 1
    return wrap((value & (2 * top - 1) ^ top) - top)
