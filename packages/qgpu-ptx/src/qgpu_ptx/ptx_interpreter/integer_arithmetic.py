"""Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions")."""

from __future__ import annotations

from qgpu_ptx.ptx_interpreter.instruction_table import (
    INTEGERS,
    SIGNED,
    Modifiers,
    lane_instruction,
)
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES, ScalarType

_TYPE = f"type={INTEGERS}"
# PTX leaves x / 0 and x % 0 open. NVIDIA's assembler (sm_75) ends both its 32-bit sequences by
# replacing the result with the complement of a zero divisor: all ones, signed or not. The other
# widths follow that rule here; on hardware the 64-bit result depends on the operands' size.
DIVISION_BY_ZERO = -1
_REF = "Integer Arithmetic Instructions: "


def _type(m: Modifiers) -> ScalarType:
    return SCALAR_TYPES[m["type"]]


def _saturate(value: int, type_: ScalarType) -> int:
    low, high = type_.range
    return min(max(value, low), high)


@lane_instruction("add", _TYPE, "T <- T T", reference=_REF + "add")
@lane_instruction("add", "sat=sat type=s32", "T <- T T", reference=_REF + "add")
def add(m: Modifiers, a: int, b: int) -> int:
    """Sum; `.sat` clamps to the range of s32."""
    return _saturate(a + b, _type(m)) if "sat" in m else a + b


@lane_instruction("sub", _TYPE, "T <- T T", reference=_REF + "sub")
@lane_instruction("sub", "sat=sat type=s32", "T <- T T", reference=_REF + "sub")
def sub(m: Modifiers, a: int, b: int) -> int:
    """Difference; `.sat` clamps to the range of s32."""
    return _saturate(a - b, _type(m)) if "sat" in m else a - b


def _part(m: Modifiers, product: int) -> int:
    """The low or high half of a double-width product; the sign is kept by the shift."""
    return product >> _type(m).bits if m["part"] == "hi" else product


@lane_instruction("mul", f"part=lo|hi {_TYPE}", "T <- T T", reference=_REF + "mul")
def mul(m: Modifiers, a: int, b: int) -> int:
    """Low or high half of the product."""
    return _part(m, a * b)


@lane_instruction("mul", "part=wide type=u16|s16|u32|s32", "W <- T T", reference=_REF + "mul")
def mul_wide(m: Modifiers, a: int, b: int) -> int:
    """The whole product in twice the width."""
    return a * b


@lane_instruction("mad", f"part=lo|hi {_TYPE}", "T <- T T T", reference=_REF + "mad")
def mad(m: Modifiers, a: int, b: int, c: int) -> int:
    """Half of the product, plus c."""
    low_or_high = _part(m, a * b)
    return _type(m).value(low_or_high) + c


@lane_instruction("mad", "part=hi sat=sat type=s32", "T <- T T T", reference=_REF + "mad")
def mad_sat(m: Modifiers, a: int, b: int, c: int) -> int:
    """High half of the product, plus c, clamped."""
    return _saturate(_part(m, a * b) + c, _type(m))


@lane_instruction("mad", "part=wide type=u16|s16|u32|s32", "W <- T T W", reference=_REF + "mad")
def mad_wide(m: Modifiers, a: int, b: int, c: int) -> int:
    """The whole product plus c in twice the width."""
    return a * b + c


def _product24(m: Modifiers, a: int, b: int) -> int:
    """Bits 47..16 (hi) or 31..0 (lo) of the product of the low 24 bits."""

    def low24(value: int) -> int:
        value &= 0xFFFFFF
        return value - (1 << 24) if _type(m).signed and value >> 23 else value

    product = low24(a) * low24(b)
    return product >> 16 if m["part"] == "hi" else product


@lane_instruction("mul24", "part=lo|hi type=u32|s32", "T <- T T", reference=_REF + "mul24")
def mul24(m: Modifiers, a: int, b: int) -> int:
    """Product of 24-bit operands, low or high 32 of its 48 bits."""
    return _product24(m, a, b)


@lane_instruction("mad24", "part=lo|hi type=u32|s32", "T <- T T T", reference=_REF + "mad24")
@lane_instruction("mad24", "part=hi sat=sat type=s32", "T <- T T T", reference=_REF + "mad24")
def mad24(m: Modifiers, a: int, b: int, c: int) -> int:
    """`mul24` plus c."""
    total = _type(m).value(_product24(m, a, b)) + c
    return _saturate(total, _type(m)) if "sat" in m else total


@lane_instruction("sad", _TYPE, "T <- T T T", reference=_REF + "sad")
def sad(m: Modifiers, a: int, b: int, c: int) -> int:
    """c + |a - b|."""
    return c + abs(a - b)


def _truncated_quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


@lane_instruction("div", _TYPE, "T <- T T", reference=_REF + "div")
def div(m: Modifiers, a: int, b: int) -> int:
    """Quotient, rounded towards zero; the least integer divided by -1 wraps to itself."""
    return DIVISION_BY_ZERO if b == 0 else _truncated_quotient(a, b)


@lane_instruction("rem", _TYPE, "T <- T T", reference=_REF + "rem")
def rem(m: Modifiers, a: int, b: int) -> int:
    """Remainder with the sign of a."""
    return DIVISION_BY_ZERO if b == 0 else a - b * _truncated_quotient(a, b)


@lane_instruction("abs", f"type={SIGNED}", "T <- T", reference=_REF + "abs")
def abs_(m: Modifiers, a: int) -> int:
    """Absolute value; the least integer is its own."""
    return abs(a)


@lane_instruction("neg", f"type={SIGNED}", "T <- T", reference=_REF + "neg")
def neg(m: Modifiers, a: int) -> int:
    """Negation; the least integer is its own."""
    return -a


@lane_instruction("min", _TYPE, "T <- T T", reference=_REF + "min")
def min_(m: Modifiers, a: int, b: int) -> int:
    """The smaller."""
    return min(a, b)


@lane_instruction("max", _TYPE, "T <- T T", reference=_REF + "max")
def max_(m: Modifiers, a: int, b: int) -> int:
    """The larger."""
    return max(a, b)


@lane_instruction("dp4a", "at=u32|s32 bt=u32|s32", "s32 <- b32 b32 b32", reference=_REF + "dp4a")
def dp4a(m: Modifiers, a: int, b: int, c: int) -> int:
    """c plus the dot product of four bytes."""
    at, bt = SCALAR_TYPES[m["at"][0] + "8"], SCALAR_TYPES[m["bt"][0] + "8"]
    return c + sum(at.value(a >> shift) * bt.value(b >> shift) for shift in (0, 8, 16, 24))


@lane_instruction(
    "dp2a", "half=lo|hi at=u32|s32 bt=u32|s32", "s32 <- b32 b32 b32", reference=_REF + "dp2a"
)
def dp2a(m: Modifiers, a: int, b: int, c: int) -> int:
    """c plus the dot product of two half-words of a and two bytes of b."""
    at, bt = SCALAR_TYPES[m["at"][0] + "16"], SCALAR_TYPES[m["bt"][0] + "8"]
    b >>= 16 if m["half"] == "hi" else 0
    return c + sum(at.value(a >> 16 * i) * bt.value(b >> 8 * i) for i in (0, 1))
