"""Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions" and integer bit counts)."""

from __future__ import annotations

from qgpu_ptx.ptx_interpreter.instruction_table import BITS, Modifiers, lane_instruction
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

_LOGIC = "Logic and Shift Instructions: "
_INTEGER = "Integer Arithmetic Instructions: "
_LOGIC_TYPES = f"type=pred|{BITS}"
_FULL = 0xFFFFFFFF


@lane_instruction("and", _LOGIC_TYPES, "T <- T T", reference=_LOGIC + "and")
def and_(m: Modifiers, a: int, b: int) -> int:
    """Bitwise and."""
    return a & b


@lane_instruction("or", _LOGIC_TYPES, "T <- T T", reference=_LOGIC + "or")
def or_(m: Modifiers, a: int, b: int) -> int:
    """Bitwise or."""
    return a | b


@lane_instruction("xor", _LOGIC_TYPES, "T <- T T", reference=_LOGIC + "xor")
def xor(m: Modifiers, a: int, b: int) -> int:
    """Bitwise exclusive or."""
    return a ^ b


@lane_instruction("not", _LOGIC_TYPES, "T <- T", reference=_LOGIC + "not")
def not_(m: Modifiers, a: int) -> int:
    """Bitwise complement."""
    return ~a


@lane_instruction("cnot", f"type={BITS}", "T <- T", reference=_LOGIC + "cnot")
def cnot(m: Modifiers, a: int) -> int:
    """1 if a is 0, else 0."""
    return int(a == 0)


@lane_instruction("lop3", "type=b32", "T <- T T T u32", reference=_LOGIC + "lop3")
def lop3(m: Modifiers, a: int, b: int, c: int, table: int) -> int:
    """Any function of three bits: bit (a << 2 | b << 1 | c) of the table."""
    result = 0
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


@lane_instruction("shl", f"type={BITS}", "T <- T u32", reference=_LOGIC + "shl")
def shl(m: Modifiers, a: int, amount: int) -> int:
    """Left shift; an amount of the width or more gives 0."""
    return a << min(amount, SCALAR_TYPES[m["type"]].bits)


@lane_instruction(
    "shr", f"type={BITS}|u16|u32|u64|s16|s32|s64", "T <- T u32", reference=_LOGIC + "shr"
)
def shr(m: Modifiers, a: int, amount: int) -> int:
    """Right shift; an amount of the width or more gives 0, or the sign for signed types."""
    return a >> min(amount, SCALAR_TYPES[m["type"]].bits)


@lane_instruction(
    "shf", "dir=l|r mode=clamp|wrap type=b32", "T <- T T u32", reference=_LOGIC + "shf"
)
def shf(m: Modifiers, a: int, b: int, amount: int) -> int:
    """Funnel shift of b:a; left takes the high word, right the low word."""
    amount = min(amount, 32) if m["mode"] == "clamp" else amount & 31
    both = b << 32 | a
    return (both << amount) >> 32 if m["dir"] == "l" else both >> amount


@lane_instruction("popc", "type=b32|b64", "u32 <- T", reference=_INTEGER + "popc")
def popc(m: Modifiers, a: int) -> int:
    """Number of ones."""
    return a.bit_count()


@lane_instruction("clz", "type=b32|b64", "u32 <- T", reference=_INTEGER + "clz")
def clz(m: Modifiers, a: int) -> int:
    """Number of leading zeros; the width for 0."""
    return SCALAR_TYPES[m["type"]].bits - a.bit_length()


@lane_instruction("brev", "type=b32|b64", "T <- T", reference=_INTEGER + "brev")
def brev(m: Modifiers, a: int) -> int:
    """Bits in reverse order."""
    bits = SCALAR_TYPES[m["type"]].bits
    return int(f"{a:0{bits}b}"[::-1], 2)


@lane_instruction(
    "bfind", "amount?=shiftamt type=u32|u64|s32|s64", "u32 <- T", reference=_INTEGER + "bfind"
)
def bfind(m: Modifiers, a: int) -> int:
    """Position of the highest one (for a negative number, zero) bit; all ones if there is none."""
    position = (~a if a < 0 else a).bit_length() - 1
    if position < 0:
        return _FULL
    return SCALAR_TYPES[m["type"]].bits - 1 - position if "amount" in m else position


@lane_instruction("bfe", "type=u32|u64|s32|s64", "T <- T u32 u32", reference=_INTEGER + "bfe")
def bfe(m: Modifiers, a: int, position: int, length: int) -> int:
    """Bit field, extended by zero or by its highest bit; beyond the top it is 0 or the sign."""
    type_ = SCALAR_TYPES[m["type"]]
    position, length = position & 0xFF, length & 0xFF
    field = (a & type_.mask) >> position & ((1 << length) - 1)
    if not type_.signed or length == 0:
        return field
    sign = (a & type_.mask) >> min(position + length - 1, type_.bits - 1) & 1
    # Bits of the field beyond the top of a, and all above the field, take the sign.
    real = max(0, min(length, type_.bits - position))
    return field | -(1 << real) if sign else field


@lane_instruction("bfi", "type=b32|b64", "T <- T T u32 u32", reference=_INTEGER + "bfi")
def bfi(m: Modifiers, a: int, b: int, position: int, length: int) -> int:
    """b with a field replaced by the low bits of a."""
    position, length = position & 0xFF, length & 0xFF
    hole = ((1 << length) - 1) << position
    return (b & ~hole) | (a << position & hole)


@lane_instruction("bmsk", "mode=clamp|wrap type=b32", "T <- u32 u32", reference=_INTEGER + "bmsk")
def bmsk(m: Modifiers, start: int, width: int) -> int:
    """`width` ones from bit `start`."""
    if m["mode"] == "clamp":
        start, width = min(start, 32), min(width, 32)
    else:
        start, width = start & 31, width & 31
    return ((1 << width) - 1) << start


@lane_instruction(
    "szext", "mode=clamp|wrap type=u32|s32", "T <- T u32", reference=_INTEGER + "szext"
)
def szext(m: Modifiers, a: int, width: int) -> int:
    """The low `width` bits of a, extended by sign or zero."""
    width = min(width, 32) if m["mode"] == "clamp" else width & 31
    field = a & ((1 << width) - 1)
    if m["type"] == "s32" and width and field >> (width - 1):
        return field - (1 << width)
    return field


@lane_instruction("fns", "type=b32", "T <- T T s32", reference=_INTEGER + "fns")
def fns(m: Modifiers, mask: int, base: int, offset: int) -> int:
    """Position of the offset-th one of `mask` from bit `base`, upwards or downwards."""
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else _FULL
    step = 1 if offset > 0 else -1
    left, position = abs(offset), base
    while 0 <= position < 32:
        left -= mask >> position & 1
        if left == 0:
            return position
        position += step
    return _FULL


# Byte numbers (0-3 of a, 4-7 of b) by selector, lowest byte first.
_PRMT_MODES = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


@lane_instruction(
    "prmt",
    "type=b32 mode?=f4e|b4e|rc8|ecl|ecr|rc16",
    "T <- T T T",
    reference="Data Movement and Conversion Instructions: prmt",
)
def prmt(m: Modifiers, a: int, b: int, selector: int) -> int:
    """Picks four bytes of b:a; in the default mode, selector bit 3 spreads the byte's sign."""
    source = (b << 32 | a).to_bytes(8, "little")
    if "mode" in m:
        return int.from_bytes(
            bytes(source[number] for number in _PRMT_MODES[m["mode"]][selector & 3]), "little"
        )
    result = 0
    for index in range(4):
        nibble = selector >> 4 * index & 15
        byte = source[nibble & 7]
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * index
    return result
