"""Division by a constant as a multiplication (Granlund and Montgomery 1994, section 4)."""

from __future__ import annotations

from qgpu_ptx.ir import WORD, Imm, Value
from qgpu_ptx.ir_builder import IrBuilder

BITS = 32


def divide_unsigned(b: IrBuilder, value: Value, divisor: int, largest: int = WORD) -> Value:
    """value // divisor for 0 <= value <= largest and divisor > 0."""
    if divisor == 1:
        return value
    if divisor & (divisor - 1) == 0:
        return b.shr(value, divisor.bit_length() - 1)
    if divisor > largest:
        return Imm(0)
    # The smallest shift for which the rounded-up reciprocal is exact up to `largest`.
    for shift in range(BITS + 1):
        factor = -(-(1 << (BITS + shift)) // divisor)
        error = factor * divisor - (1 << (BITS + shift))
        if factor <= WORD and error * largest < 1 << (BITS + shift):
            return b.shr(b.op("mulhiu", value, factor), shift)
    # The factor needs 33 bits: add the value once more, halving to stay within a word.
    shift = divisor.bit_length()
    factor = -(-(1 << (BITS + shift)) // divisor) - (1 << BITS)
    high = b.op("mulhiu", value, factor)
    return b.shr(b.add(b.shr(b.sub(value, high), 1), high), shift - 1)
