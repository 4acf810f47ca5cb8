"""Joins operations that take parts of words: a part of a part, masks and shifts that take one.

Also counts of zeros in reversed words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qgpu_ptx.flow_graph import single_assignments, stable
from qgpu_ptx.ir import ZERO, Function, Imm, Op, Pred, Reg, Value

_COUNTS = {"clz": "ctz", "ctz": "clz"}
_MASKS = {0xFF: 1, 0xFFFF: 2}
_NAMES = {("extb", 1, False), ("extbs", 1, True), ("exth", 2, False), ("exths", 2, True)}
_KINDS = {name: (size, signed) for name, size, signed in _NAMES}
_BY_KIND = {kind: name for name, kind in _KINDS.items()}


@dataclass(frozen=True)
class _Part:
    """`size` bytes of a word at a byte address."""

    word: Value
    place: Value
    size: int
    signed: bool


def fold_parts(function: Function) -> Function:
    """Rewrites every operation that takes a part of what is itself a part, or shifted."""
    single = single_assignments(function)
    blocks = []
    for block in function.blocks:
        ops = []
        for op in block.ops:
            new = _fold(op, single)
            if new != op and new.dst in single:
                single[new.dst] = new
            ops.append(new)
        blocks.append(replace(block, ops=tuple(ops)))
    return replace(function, blocks=tuple(blocks))


def _fold(op: Op, single: dict[Reg | Pred, Op]) -> Op:
    if op.name in _COUNTS and isinstance(op.a, Reg) and op.a in single:
        counted = single[op.a]
        reverses = counted.name == "brev" and stable(counted.a, single)
        return replace(op, name=_COUNTS[op.name], a=counted.a) if reverses else op
    outer = _part(op)
    if outer is None or outer.place != ZERO or not isinstance(outer.word, Reg):
        return op
    inner = single.get(outer.word)
    if inner is None or not all(stable(value, single) for value in inner.values()):
        return op
    if inner.name == "shr" and isinstance(inner.b, Imm) and inner.b.value < 32:
        place, rest = divmod(inner.b.value, 8)
        if rest == 0 and place % outer.size == 0:
            return _take(op, replace(outer, word=inner.a, place=Imm(place)))
    part = _part(inner)
    if part is None:
        return op
    if part.size == outer.size:
        return _take(op, replace(part, signed=outer.signed))
    if part.size < outer.size and (outer.signed or not part.signed):
        return replace(op, name="mov", a=outer.word, b=ZERO)
    if part.size > outer.size and isinstance(part.place, Imm):
        return _take(op, replace(outer, word=part.word, place=Imm(part.place.value & 2)))
    return op


def _part(op: Op) -> _Part | None:
    """The part of a word that an operation takes."""
    if op.name in _KINDS:
        size, signed = _KINDS[op.name]
        return _Part(op.a, op.b, size, signed)
    if op.name == "and" and isinstance(op.b, Imm) and op.b.value in _MASKS:
        return _Part(op.a, ZERO, _MASKS[op.b.value], signed=False)
    return None


def _take(op: Op, part: _Part) -> Op:
    return replace(op, name=_BY_KIND[part.size, part.signed], a=part.word, b=part.place)
