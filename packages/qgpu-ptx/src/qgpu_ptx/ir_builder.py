"""Makes IR: emits operations into the current block, simplifying as it goes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from qgpu_isa.program import Status

from qgpu_ptx.ir import (
    EXIT,
    WORD,
    ZERO,
    Address,
    BasicBlock,
    Edge,
    Function,
    Imm,
    Op,
    Origin,
    Pred,
    PredUse,
    Reg,
    Special,
    Terminator,
    Value,
)
from qgpu_ptx.simplify_op import simplify

Condition = PredUse | bool
"""A predicate operand, or a truth known when the kernel is lowered."""


@dataclass
class _OpenBlock:
    label: str
    ops: list[Op] = field(default_factory=list)
    terminator: Terminator | None = None
    store_of: str | None = None


class IrBuilder:
    """Emits into one function; `origin` is stamped on every operation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.origin = Origin()
        self._numbers = 0
        self._labels = 0
        self._blocks: list[_OpenBlock] = []
        self._current = _OpenBlock("entry")
        self._blocks.append(self._current)
        self._variables: set[Reg | Pred] = set()

    # Registers and plain operations

    def register(self) -> Reg:
        """A fresh register."""
        self._numbers += 1
        return Reg(self._numbers)

    def predicate(self) -> Pred:
        """A fresh predicate."""
        self._numbers += 1
        return Pred(self._numbers)

    def variable(self) -> Reg:
        """A fresh register that will be assigned more than once."""
        register = self.register()
        self._variables.add(register)
        return register

    def predicate_variable(self) -> Pred:
        """A fresh predicate that will be assigned more than once."""
        predicate = self.predicate()
        self._variables.add(predicate)
        return predicate

    def current(self, value: Value) -> Value:
        """The value that `value` has now, even if it is a variable that changes later."""
        if value not in self._variables:
            return value
        dst = self.register()
        self.assign(dst, value)
        return dst

    def current_condition(self, condition: Condition) -> Condition:
        """The truth that a condition has now."""
        if isinstance(condition, bool) or condition.pred not in self._variables:
            return condition
        dst = self.predicate()
        self.assign_predicate(dst, condition)
        return PredUse(dst)

    def is_variable(self, value: Value) -> bool:
        """Whether a register is assigned more than once."""
        return value in self._variables

    @property
    def here(self) -> str:
        """The label of the block being made."""
        return self._current.label

    def emit(self, op: Op) -> None:
        """Appends an operation; code behind a jump is unreachable and dropped."""
        if self._current.terminator is None:
            self._current.ops.append(replace(op, origin=self.origin))

    def begin(self, *ops: Op) -> None:
        """Puts operations in front of all others."""
        self._blocks[0].ops[:0] = ops

    def op(self, name: str, a: Value, b: Value | int = ZERO) -> Value:
        """The value of an operation."""
        simple = simplify(name, a, Imm(b & WORD) if isinstance(b, int) else b)
        if not isinstance(simple, tuple):
            return simple
        dst = self.register()
        self.emit(Op(simple[0], dst, simple[1], simple[2]))
        return dst

    def add(self, a: Value, b: Value | int) -> Value:
        return self.op("add", a, b)

    def sub(self, a: Value, b: Value | int) -> Value:
        return self.op("sub", a, b)

    def and_(self, a: Value, b: Value | int) -> Value:
        return self.op("and", a, b)

    def or_(self, a: Value, b: Value | int) -> Value:
        return self.op("or", a, b)

    def xor(self, a: Value, b: Value | int) -> Value:
        return self.op("xor", a, b)

    def not_(self, a: Value) -> Value:
        return self.op("xor", a, WORD)

    def shl(self, a: Value, b: Value | int) -> Value:
        return self.op("shl", a, b)

    def shr(self, a: Value, b: Value | int) -> Value:
        return self.op("shr", a, b)

    def sar(self, a: Value, b: Value | int) -> Value:
        return self.op("sar", a, b)

    def assign(self, dst: Reg, value: Value) -> None:
        """Sets a register that may be set elsewhere too."""
        self.emit(Op("mov", dst, value))

    def add_where(self, condition: Condition, variable: Reg, amount: int) -> None:
        """Adds a constant to a variable where the condition holds."""
        if condition is not False:
            guard = None if condition is True else condition
            self.emit(Op("add", variable, variable, Imm(amount), guard))

    # Predicates

    def compare(self, name: str, a: Value, b: Value | int) -> Condition:
        """The truth of a comparison (`seteq` ... `setgeu`)."""
        simple = simplify(name, a, Imm(b & WORD) if isinstance(b, int) else b)
        if isinstance(simple, Imm):
            return bool(simple.value)
        assert isinstance(simple, tuple)
        dst = self.predicate()
        self.emit(Op(simple[0], dst, simple[1], simple[2]))
        return PredUse(dst)

    def flag(self, name: str, a: Value, b: Value | int) -> Value:
        """A comparison as a word, 0 or 1."""
        return self.op(name, a, b)

    def word(self, condition: Condition) -> Value:
        """A condition as a word, 0 or 1."""
        return self.select(condition, Imm(1), ZERO)

    def select(self, condition: Condition, a: Value, b: Value) -> Value:
        """a where the condition holds, b elsewhere."""
        if isinstance(condition, bool):
            return a if condition else b
        if a == b:
            return a
        if (a, b) == (ZERO, Imm(1)):
            a, b, condition = b, a, ~condition
        dst = self.register()
        self.emit(Op("sel", dst, a, b, condition))
        return dst

    def ballot(self, condition: Condition) -> Value:
        """Bits of the lanes of this pass for which the condition holds."""
        if condition is False:
            return ZERO
        dst = self.register()
        self.emit(Op("ballot", dst, pred=None if condition is True else condition))
        return dst

    def nonzero(self, word: Value) -> Condition:
        """Whether a word differs from 0."""
        return self.compare("setne", word, 0)

    def invert(self, condition: Condition) -> Condition:
        return not condition if isinstance(condition, bool) else ~condition

    def both(self, p: Condition, q: Condition) -> Condition:
        """p and q."""
        for first, second in ((p, q), (q, p)):
            if isinstance(first, bool):
                return second if first else False
        if p == q:
            return p
        # For words of 0 and 1, not-p < q holds exactly where both p and q do.
        return self.compare("setltu", self.word(self.invert(p)), self.word(q))

    def either(self, p: Condition, q: Condition) -> Condition:
        """p or q."""
        return self.invert(self.both(self.invert(p), self.invert(q)))

    def differ(self, p: Condition, q: Condition) -> Condition:
        """p exclusive-or q."""
        for first, second in ((p, q), (q, p)):
            if isinstance(first, bool):
                return self.invert(second) if first else second
        return self.compare("setne", self.word(p), self.word(q))

    def assign_predicate(self, dst: Pred, condition: Condition) -> None:
        """Sets a predicate that may be set elsewhere too."""
        if isinstance(condition, bool):
            self.emit(Op("seteq" if condition else "setne", dst, ZERO, ZERO))
        else:
            self.emit(Op("setp", dst, pred=condition))

    # Memory

    def load(
        self, address: Value, offset: int = 0, space: str = "", *, volatile: bool = False
    ) -> Reg:
        """The word at a byte address."""
        dst = self.register()
        where = Address("add", address, Imm(offset & WORD))
        self.emit(Op("ld", dst, address=where, space=space, volatile=volatile))
        return dst

    def load_part(
        self, address: Value, size: int, space: str = "", *, volatile: bool = False
    ) -> Value:
        """One or two bytes in memory, zero-extended."""
        dst = self.register()
        name = "ldb" if size == 1 else "ldh"
        where = Address("add", address, ZERO)
        self.emit(Op(name, dst, address=where, space=space, volatile=volatile))
        return self.part(dst, Special.PLACE, size)

    def part(self, word: Value, place: Value | int, size: int, *, signed: bool = False) -> Value:
        """The byte or half of a word at a byte address (modulo 4), extended to a word."""
        name = ("extb" if size == 1 else "exth") + ("s" if signed else "")
        return self.op(name, word, place)

    def store(
        self, address: Value, data: Value, offset: int = 0, space: str = "",
        guard: PredUse | None = None,
    ) -> None:  # fmt: skip
        """Stores a word."""
        where = Address("add", address, Imm(offset & WORD))
        self.emit(Op("st", None, b=data, pred=guard, address=where, space=space))

    def store_part(self, address: Value, data: Value, size: int, space: str = "") -> Reg:
        """Stores one or two bytes where lanes make whole words; elsewhere the result is 1."""
        dst = self.register()
        name = "stb" if size == 1 else "sth"
        self.emit(Op(name, dst, b=data, address=Address("add", address, ZERO), space=space))
        return dst

    def load_exclusive(self, address: Value, space: str = "", size: int = 4) -> Reg:
        """Starts an atomic step with an `ldx`; `begin_store` and `finish_exclusive` complete it."""
        load = self.label("atomic")
        self.place(load)
        dst = self.register()
        name = {1: "ldxb", 2: "ldxh", 4: "ldx"}[size]
        self.emit(Op(name, dst, address=Address("add", address, ZERO), space=space))
        return dst

    def begin_store(self) -> None:
        """The block just begun by `load_exclusive` ends; stores follow."""
        load = self._current.label
        self.place(self.label("store"))
        self._current.store_of = load

    def finish_exclusive(self) -> None:
        """Ends the atomic step."""
        after = self.label("after")
        self.jump(after)
        self.place(after)

    # Control flow

    def label(self, hint: str) -> str:
        """A fresh block label."""
        self._labels += 1
        return f"{hint}.{self._labels}"

    def place(self, label: str) -> None:
        """Starts a block; control falls into it from the block before."""
        self.jump(label)
        self._current = _OpenBlock(label)
        self._blocks.append(self._current)

    def _terminate(self, terminator: Terminator) -> None:
        if self._current.terminator is None:
            self._current.terminator = terminator

    def jump(self, label: str, status: Status = Status.RUN) -> None:
        self._terminate(Terminator(Edge(label, status), origin=self.origin))

    def branch(self, condition: Condition, taken: str, otherwise: str) -> None:
        """Goes to one of two blocks."""
        if isinstance(condition, bool):
            self.jump(taken if condition else otherwise)
        else:
            edges = Edge(taken), Edge(otherwise)
            self._terminate(Terminator(edges[0], condition, edges[1], origin=self.origin))

    def choose(self, first: str, second: str) -> None:
        """Goes to one of two blocks that do the same; the pass `choose_ways` decides which.

        The branch's predicate is one that nothing sets.
        """
        self.branch(PredUse(self.predicate()), first, second)

    def exit(self) -> None:
        self._terminate(Terminator(EXIT, origin=self.origin))

    def trap(self) -> None:
        self._terminate(Terminator(EXIT, trap=True, origin=self.origin))

    def barrier(self, status: Status) -> None:
        """Waits for the warp or the CTA."""
        after = self.label("barrier")
        self.jump(after, status)
        self.place(after)

    def skip_unless(self, condition: Condition) -> str:
        """Starts code that runs where the condition holds; give the label to `place` behind it."""
        then, after = self.label("then"), self.label("endif")
        self.branch(condition, then, after)
        self.place(then)
        return after

    def finish(self) -> Function:
        """The function, every open end an exit."""
        self.exit()
        blocks = []
        for block in self._blocks:
            assert block.terminator is not None
            blocks.append(
                BasicBlock(block.label, tuple(block.ops), block.terminator, block.store_of)
            )
        return Function(self.name, tuple(blocks))
