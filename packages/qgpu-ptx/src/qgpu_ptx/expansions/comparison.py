"""Comparison and selection: setp, set, selp, slct."""

from __future__ import annotations

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.expansions.wide_words import equal_wide, less_wide
from qgpu_ptx.instruction_context import InstructionContext, Words
from qgpu_ptx.ir import WORD, ZERO, Imm, Value
from qgpu_ptx.ir_builder import Condition, IrBuilder
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES, ScalarType

_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compare(b: IrBuilder, cmp: str, type_: ScalarType, x: Words, y: Words) -> Condition:
    """The truth of `x cmp y` for values of a type."""
    cmp = _UNSIGNED_NAMES.get(cmp, cmp)
    if type_.bits == 64:
        assert len(x) == len(y) == 2
        if cmp in ("eq", "ne"):
            equal = equal_wide(b, x, y)
            return equal if cmp == "eq" else b.invert(equal)
        swapped = cmp in ("gt", "le")
        first, second = (y, x) if swapped else (x, y)
        assert len(first) == len(second) == 2
        less = less_wide(b, first, second, signed=type_.signed)
        return less if cmp in ("lt", "gt") else b.invert(less)
    return _compare_words(b, cmp, type_.signed, x[0], y[0])


def _compare_words(b: IrBuilder, cmp: str, signed: bool, x: Value, y: Value) -> Condition:
    if cmp in ("eq", "ne"):
        return b.compare(f"set{cmp}", x, y)
    suffix = "s" if signed else "u"
    if cmp in ("gt", "le"):
        # x > n is x >= n+1, which keeps the constant on the right.
        top = 0x7FFFFFFF if signed else WORD
        if isinstance(y, Imm) and y.value != top:
            name = "setge" if cmp == "gt" else "setlt"
            return b.compare(name + suffix, x, y.value + 1 & WORD)
        x, y = y, x
    return b.compare(("setlt" if cmp in ("lt", "gt") else "setge") + suffix, x, y)


def combine(b: IrBuilder, how: str, p: Condition, q: Condition) -> Condition:
    """A boolean operation on conditions."""
    return {"and": b.both, "or": b.either, "xor": b.differ}[how](p, q)


def _test(c: InstructionContext, m: Modifiers) -> tuple[Condition, Condition | None]:
    type_ = SCALAR_TYPES[m["type"]]
    if len(c.operands) != (4 if "bool" in m else 3):
        raise c.error(f"takes {4 if 'bool' in m else 3} operands, {len(c.operands)} given")
    if m["cmp"] in ("eq", "ne"):
        # Equality does not need the sign, and narrow values are held zero-extended.
        type_ = SCALAR_TYPES[f"b{type_.bits}"]
    x, y = c.read(c.operands[1], type_), c.read(c.operands[2], type_)
    result = compare(c.b, m["cmp"], type_, x, y)
    return result, c.condition(c.operands[3]) if "bool" in m else None


@expansion("setp")
def setp(c: InstructionContext, m: Modifiers) -> None:
    """p and its complement q, each combined with a predicate."""
    result, other = _test(c, m)
    target = c.operands[0]
    first, second = (
        (target.first, target.second) if isinstance(target, ast.Pair) else (target, None)
    )
    how = m.get("bool", "and")
    inverse = c.b.invert(result)
    if other is not None:
        q = combine(c.b, how, inverse, other) if second is not None else inverse
        result, inverse = combine(c.b, how, result, other), q
    c.write_condition(first, result)
    if second is not None:
        c.write_condition(second, inverse)


@expansion("set")
def set_(c: InstructionContext, m: Modifiers) -> None:
    """All ones where the comparison holds."""
    result, other = _test(c, m)
    if other is not None:
        result = combine(c.b, m["bool"], result, other)
    c.write(c.operands[0], SCALAR_TYPES[m["to"]], (c.b.select(result, Imm(WORD), ZERO),))


@expansion("selp")
def selp(c: InstructionContext, m: Modifiers) -> None:
    """a if p, else b."""
    type_ = SCALAR_TYPES[m["type"].replace("s", "b").replace("u", "b")]
    a, b = (c.read(operand, type_) for operand in c.operands[1:3])
    condition = c.condition(c.operands[3])
    c.write(
        c.operands[0], type_, tuple(c.b.select(condition, x, y) for x, y in zip(a, b, strict=True))
    )


@expansion("slct")
def slct(c: InstructionContext, m: Modifiers) -> None:
    """a if c >= 0, else b."""
    type_ = SCALAR_TYPES[m["type"].replace("s", "b").replace("u", "b")]
    a, b = (c.read(operand, type_) for operand in c.operands[1:3])
    condition = c.b.compare("setges", c.word(3, SCALAR_TYPES["s32"]), 0)
    c.write(
        c.operands[0], type_, tuple(c.b.select(condition, x, y) for x, y in zip(a, b, strict=True))
    )
