"""Fundamental types (PTX ISA, "Fundamental Types"): width and interpretation of a bit pattern."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScalarType:
    """A PTX type; `kind` is u, s, b, f or pred. Values are kept as unsigned bit patterns."""

    name: str
    bits: int
    kind: str

    @property
    def mask(self) -> int:
        """All ones in the type's width."""
        return (1 << self.bits) - 1

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return max(1, self.bits // 8)

    @property
    def signed(self) -> bool:
        """True for s8 ... s64."""
        return self.kind == "s"

    @property
    def range(self) -> tuple[int, int]:
        """Least and greatest integer of the type."""
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, self.mask

    def value(self, bits: int) -> int:
        """The integer that the low bits of `bits` mean in this type."""
        bits &= self.mask
        if self.signed and bits >> (self.bits - 1):
            return bits - (1 << self.bits)
        return bits


SCALAR_TYPES = {
    f"{kind}{bits}": ScalarType(f"{kind}{bits}", bits, kind)
    for kind in "usb"
    for bits in (8, 16, 32, 64)
} | {
    "pred": ScalarType("pred", 1, "pred"),
    # Registers and memory of these types exist in integer kernels; no instruction computes on them.
    "f16": ScalarType("f16", 16, "f"),
    "f16x2": ScalarType("f16x2", 32, "f"),
    "f32": ScalarType("f32", 32, "f"),
    "f64": ScalarType("f64", 64, "f"),
    "bf16": ScalarType("bf16", 16, "f"),
    "bf16x2": ScalarType("bf16x2", 32, "f"),
}

PRED = SCALAR_TYPES["pred"]
U32 = SCALAR_TYPES["u32"]
U64 = SCALAR_TYPES["u64"]
B32 = SCALAR_TYPES["b32"]
FLOAT_WORDS = frozenset(
    {"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64", "tf32", "e4m3", "e5m2", "e4m3x2"}
)


def wide(type_: ScalarType) -> ScalarType:
    """The type of the same kind and twice the width (results of `mul.wide`)."""
    return SCALAR_TYPES[f"{type_.kind}{type_.bits * 2}"]
