"""Constants and copies: replaces what is known by its value, and simplifies what follows."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import single_assignments, stable
from qgpu_ptx.ir import (
    EXIT,
    ZERO,
    Address,
    Function,
    Imm,
    Op,
    Pred,
    PredUse,
    Reg,
    Terminator,
    Value,
)
from qgpu_ptx.simplify_op import COMPARES, INVERSE, evaluate, simplify

Truth = PredUse | bool


def propagate(function: Function) -> Function:
    """Repeats until nothing changes."""
    while True:
        new = _once(function)
        if new == function:
            return new
        function = new


class _Known:
    """Values of registers that are copies, and truths of predicates."""

    def __init__(self, function: Function) -> None:
        single = single_assignments(function)
        self._single = single
        self._words: dict[Value, Value] = {}
        self._truths: dict[Pred, Truth] = {}
        for dst, op in single.items():
            if isinstance(dst, Reg) and op.name == "mov" and stable(op.a, single):
                self._words[dst] = op.a
            elif isinstance(dst, Pred):
                self._learn(dst, op, single)

    def _learn(self, dst: Pred, op: Op, single: dict[Reg | Pred, Op]) -> None:
        if op.name == "setp" and op.pred is not None and stable(op.pred, single):
            self._truths[dst] = op.pred
        elif op.name in COMPARES and isinstance(op.a, Imm) and isinstance(op.b, Imm):
            self._truths[dst] = bool(evaluate(op.name, op.a.value, op.b.value))
        elif op.name in ("setne", "seteq") and op.b == ZERO and op.a in single:
            # (p ? 1 : 0) != 0 is p.
            inner = single[op.a]
            is_word = inner.name == "sel" and (inner.a, inner.b) == (Imm(1), ZERO)
            if is_word and inner.pred is not None and stable(inner.pred, single):
                self._truths[dst] = inner.pred if op.name == "setne" else ~inner.pred

    def comparison(self, use: PredUse) -> tuple[str, Value, Value] | None:
        """The comparison that a predicate operand stands for, where its operands last."""
        op = self._single.get(use.pred)
        if (
            op is None
            or op.name not in COMPARES
            or not all(stable(v, self._single) for v in op.values())
        ):
            return None
        return INVERSE[op.name] if use.negate else op.name, op.a, op.b

    def word(self, value: Value) -> Value:
        seen = 0
        while value in self._words and seen < 64:
            value = self._words[value]
            seen += 1
        return value

    def truth(self, use: PredUse) -> Truth:
        while use.pred in self._truths:
            found = self._truths[use.pred]
            if isinstance(found, bool):
                return found != use.negate
            use = PredUse(found.pred, found.negate != use.negate)
        return use


def _once(function: Function) -> Function:
    known = _Known(function)
    blocks = []
    for block in function.blocks:
        ops = []
        here = {op.dst for op in block.ops}
        for op in block.ops:
            new = _simplify_op(op, known)
            if new is not None and new.pred is not None and new.pred.pred in here:
                new = _as_comparison(new, known)
            if new is not None:
                ops.append(new)
        terminator = _simplify_terminator(block.terminator, known)
        blocks.append(replace(block, ops=tuple(ops), terminator=terminator))
    return replace(function, blocks=tuple(blocks))


def _simplify_terminator(end: Terminator, known: _Known) -> Terminator:
    if end.cond is None:
        return end
    truth = known.truth(end.cond)
    if isinstance(truth, PredUse):
        return replace(end, cond=truth)
    # The way that is left out may lead to a block that is now unreachable, and goes.
    if truth:
        return replace(end, cond=None, next=EXIT)
    return replace(end, cond=None, taken=end.next, next=EXIT, trap=False)


def _simplify_op(op: Op, known: _Known) -> Op | None:
    """The operation in simpler terms, None if it does nothing."""
    op = op.with_values({v: known.word(v) for v in op.values()})
    if op.pred is not None:
        truth = known.truth(op.pred)
        if isinstance(truth, PredUse):
            op = replace(op, pred=truth)
        elif op.name == "sel":
            return replace(op, name="mov", a=op.a if truth else op.b, b=ZERO, pred=None)
        elif op.name == "ballot":
            return replace(op, pred=None) if truth else replace(op, name="mov", a=ZERO, pred=None)
        elif op.name == "setp":
            return _constant_truth(op, truth)
        elif not truth:
            return None
        else:
            op = replace(op, pred=None)
    if op.address is not None:
        return replace(op, address=_simplify_address(op.address))
    if op.name == "sel":
        return replace(op, name="mov", b=ZERO, pred=None) if op.a == op.b else op
    if op.name in ("mov", "setp", "ballot"):
        return None if op.name == "mov" and op.a == op.dst else op
    simple = simplify(op.name, op.a, op.b)
    if isinstance(simple, tuple):
        return replace(op, name=simple[0], a=simple[1], b=simple[2])
    if isinstance(op.dst, Pred):
        assert isinstance(simple, Imm)
        return _constant_truth(op, bool(simple.value))
    return replace(op, name="mov", a=simple, b=ZERO)


def _as_comparison(op: Op, known: _Known) -> Op:
    """p ? 1 : 0 is the comparison that makes p, as a word."""
    if op.name != "sel" or (op.a, op.b) != (Imm(1), ZERO) or op.pred is None:
        return op
    found = known.comparison(op.pred)
    return op if found is None else replace(op, name=found[0], a=found[1], b=found[2], pred=None)


def _constant_truth(op: Op, truth: bool) -> Op:
    if isinstance(op.dst, Reg):
        return replace(op, name="mov", a=Imm(int(truth)), b=ZERO, pred=None)
    return replace(op, name="seteq" if truth else "setne", a=ZERO, b=ZERO, pred=op.guard)


def _simplify_address(address: Address) -> Address:
    simple = simplify(address.name, address.a, address.b)
    return Address(*simple) if isinstance(simple, tuple) else Address("add", simple, ZERO)
