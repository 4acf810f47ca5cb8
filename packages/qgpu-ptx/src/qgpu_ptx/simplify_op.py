"""Algebra on single operations: constants, neutral elements, powers of two."""

from __future__ import annotations

from qgpu_isa.instruction import INSTRUCTIONS

from qgpu_ptx.ir import WORD, ZERO, Imm, Value

COMMUTATIVE = frozenset(
    {"add", "and", "or", "xor", "mullo", "mulhiu", "mulhis", "mins", "maxs", "minu", "maxu"}
    | {"seteq", "setne"}
)
LEA_SHIFT = {"add": 0, "lea1": 1, "lea2": 2, "lea3": 3}
"""Instructions that compute (a << shift) + b."""
COMPARES = ("seteq", "setne", "setlts", "setges", "setltu", "setgeu")
INVERSE = {"seteq": "setne", "setlts": "setges", "setltu": "setgeu"}
"""The comparison that holds where another does not."""
INVERSE |= {inverse: name for name, inverse in INVERSE.items()}
_SAME = {"sub": 0, "xor": 0, "seteq": 1, "setne": 0, "setlts": 0, "setges": 1, "setltu": 0}
_SAME |= {"setgeu": 1}

Simplified = Value | tuple[str, Value, Value]


def evaluate(name: str, a: int, b: int) -> int:
    """The instruction's result on known words."""
    return INSTRUCTIONS[name].semantics(a, b, False)


def simplify(name: str, a: Value, b: Value) -> Simplified:
    """An equal value, or an equal operation that is at least as cheap."""
    if name == "mov":
        return a
    if isinstance(a, Imm) and isinstance(b, Imm):
        return Imm(evaluate(name, a.value, b.value))
    if isinstance(a, Imm) and name in COMMUTATIVE:
        a, b = b, a
    if a == b:
        if name in _SAME:
            return Imm(_SAME[name])
        if name in ("and", "or", "mins", "maxs", "minu", "maxu"):
            return a
    if isinstance(b, Imm):
        return _right(name, a, b.value)
    if isinstance(a, Imm):
        if name in ("shl", "shr", "sar", *LEA_SHIFT) and a.value == 0:
            return b if name in LEA_SHIFT else ZERO
        if name == "setgeu" and a.value == WORD:
            return Imm(1)
        if name == "setltu" and a.value == WORD:
            return ZERO
    return name, a, b


def _right(name: str, a: Value, n: int) -> Simplified:
    """Simplification with a constant second operand."""
    match name:
        case "extb" if n & 3 == 0:
            return "and", a, Imm(0xFF)
        case "exth" if n & 2 == 0:
            return "and", a, Imm(0xFFFF)
        case "add" | "sub" | "or" | "xor" | "shl" | "shr" | "sar" if n == 0:
            return a
        case "sub":
            return "add", a, Imm(-n & WORD)
        case "and" if n == 0:
            return ZERO
        case "and" if n == WORD:
            return a
        case "or" if n == WORD:
            return Imm(WORD)
        case "shl" | "shr" if n >= 32:
            return ZERO
        case "sar" if n >= 32:
            return "sar", a, Imm(31)
        case "mullo" | "mulhiu" | "mulhis" if n == 0:
            return ZERO
        case "mullo" if n == 1:
            return a
        case "mullo" if n & (n - 1) == 0:
            return "shl", a, Imm(n.bit_length() - 1)
        case "mulhiu" if n == 1:
            return ZERO
        case "mulhiu" if n & (n - 1) == 0:
            return "shr", a, Imm(33 - n.bit_length())
        case "mulhis" if n & (n - 1) == 0 and n < 1 << 31:
            return "sar", a, Imm(min(31, 33 - n.bit_length()))
        case "minu" | "setltu" if n == 0:
            return ZERO
        case "maxu" if n == 0:
            return a
        case "setgeu" if n == 0:
            return Imm(1)
        case "setltu" if n == 1:
            return "seteq", a, ZERO
        case "setgeu" if n == 1:
            return "setne", a, ZERO
    return name, a, Imm(n)
