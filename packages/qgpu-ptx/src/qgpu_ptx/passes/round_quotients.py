"""Quotients by constants from a rounded reciprocal of one word, corrected by the remainder.

Compilers divide by a constant with a product and a shift. The upper word of the product is a row as
large as the dividend, and the shift needs the multiplier again. With the reciprocal rounded up to a
word, the upper word is the quotient already, or one more; what is left then tells, and is small.
Corrections mostly change nothing, so that their rows are one token.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qgpu_isa.machine_config import WORD_BITS

from qgpu_ptx.flow_graph import define_here, lasting_definitions, maker
from qgpu_ptx.ir import ZERO, Function, Imm, Op, Pred, Reg, Value

LARGEST_DIVISOR = 1 << (WORD_BITS - 1)
"""Remainders of larger ones reach the sign bit, which tells that a quotient is one too many."""
Definitions = dict[Reg | Pred, Op]


@dataclass(frozen=True)
class _Quotient:
    """dividend // divisor, for every word."""

    dividend: Value
    divisor: int


def round_quotients(function: Function) -> Function:
    """Rewrites every division by a constant, and the remainders that belong to it."""
    lasting = lasting_definitions(function)
    worker = _Worker(function.fresh())
    blocks = []
    for block in function.blocks:
        here = dict(lasting)
        ops: list[Op] = []
        for op in block.ops:
            ops += worker.rewrite(op, here)
            define_here(here, op, lasting)
        blocks.append(replace(block, ops=tuple(ops)))
    return replace(function, blocks=tuple(blocks))


class _Worker:
    def __init__(self, fresh: int) -> None:
        self._fresh = fresh
        self._left: dict[Reg | Pred, Reg] = {}
        """By quotient, what the rounded one leaves; less than 0 if that is one too many."""

    def _register(self) -> Reg:
        self._fresh += 1
        return Reg(self._fresh - 1)

    def rewrite(self, op: Op, here: Definitions) -> tuple[Op, ...]:
        """What stands in place of an operation."""
        found = _quotient(op, here)
        if found is not None and op.dst is not None:
            return self._divide(op, op.dst, found)
        quotient, found = _remainder_of(op, here)
        if found is None or quotient not in self._left:
            return (op,)
        rest, raised = self._left[quotient], self._register()
        return (
            Op("add", raised, rest, Imm(found.divisor), origin=op.origin),
            replace(op, name="minu", a=rest, b=raised),
        )

    def _divide(self, op: Op, quotient: Reg | Pred, found: _Quotient) -> tuple[Op, ...]:
        rounded, product, rest, excess = (self._register() for _ in range(4))
        self._left[quotient] = rest
        reciprocal = -(-(1 << WORD_BITS) // found.divisor)
        return (
            Op("mulhiu", rounded, found.dividend, Imm(reciprocal), origin=op.origin),
            Op("mullo", product, rounded, Imm(found.divisor), origin=op.origin),
            Op("sub", rest, found.dividend, product, origin=op.origin),
            Op("setlts", excess, rest, ZERO, origin=op.origin),
            replace(op, name="sub", a=rounded, b=excess),
        )


def _quotient(op: Op, known: Definitions) -> _Quotient | None:
    """What a shifted product divides, if it is a quotient for every word (see divide_constant)."""
    if op.name != "shr" or not isinstance(op.b, Imm) or not op.b.value:
        return None
    inner, shift = maker(op.a, known), op.b.value
    extra = 0
    high = inner
    if inner.name == "add":
        # A factor of 33 bits: (((x - high) >> 1) + high) >> shift.
        half = maker(inner.a, known)
        high = maker(inner.b, known)
        difference = maker(half.a, known)
        if half.name != "shr" or half.b != Imm(1) or difference.name != "sub":
            return None
        if difference.b != inner.b or difference.a != high.a:
            return None
        extra, shift = 1 << WORD_BITS, shift + 1
    if high.name != "mulhiu" or not isinstance(high.b, Imm) or shift >= WORD_BITS:
        return None
    factor, whole = extra + high.b.value, 1 << WORD_BITS + shift
    divisor = whole // factor + 1
    exact = whole < factor * divisor <= whole + (1 << shift)
    return _Quotient(high.a, divisor) if exact and 2 < divisor <= LARGEST_DIVISOR else None


def _remainder_of(op: Op, known: Definitions) -> tuple[Value, _Quotient | None]:
    """The quotient of whose dividend an operation takes the remainder: x - q * d."""
    if op.name == "sub" and not op.is_memory:
        product = maker(op.b, known)
        if product.name == "mullo" and isinstance(product.a, Reg) and product.a in known:
            found = _quotient(known[product.a], known)
            if found is not None and (op.a, product.b) == (found.dividend, Imm(found.divisor)):
                return product.a, found
    return ZERO, None
