"""Atomics done for all lanes together: each lane's operand is computed by all of them in turn.

A combined atomic (see `combined_atomic`) leaves each lane's operand in a scratch word, for which a
row of registers is sent. Where all lanes of a pass certainly come, and the operand is at most a
load and two operations, every lane can compute the operand of lane 0, then that of lane 1, and so
on. These values are the same in all lanes, so they take no row, and no scratch word.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from qgpu_ptx.dependences import may_meet
from qgpu_ptx.expansions.combined_atomic import neutral_word
from qgpu_ptx.flow_graph import single_assignments
from qgpu_ptx.ir import (
    LOADS,
    WORD,
    Address,
    BasicBlock,
    Function,
    Imm,
    Op,
    Pred,
    Reg,
    Special,
    Value,
)
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.passes.choose_ways import drop_unread
from qgpu_ptx.passes.keep_together import blocks_of_whole_passes
from qgpu_ptx.row_costs import UNKNOWN, Row, estimate_rows
from qgpu_ptx.simplify_op import LEA_SHIFT, evaluate, simplify
from qgpu_ptx.value_ranges import ValueRanges

MAX_OPS = 2
"""Operations of an operand beside its load: with more, the rounds take more machine blocks."""

DEEPEST = 8
"""Operations one behind the other that are followed to find an operand."""


def gather_operands(function: Function, shape: LaunchShape) -> Function:
    """Rewrites the combined atomics of blocks that whole passes run."""
    if not any(neutral_word(op.space) is not None for op in function.ops()):
        return function
    whole = blocks_of_whole_passes(function)
    worker = _Worker(function, shape, whole)
    blocks = tuple(worker.rewrite(b) if b.label in whole else b for b in function.blocks)
    return drop_unread(replace(function, blocks=blocks))


@dataclass
class _Operand:
    """What the lanes have stored in an area: the store's place, and the loads of it."""

    store: int
    value: Value
    loads: dict[int, int] = field(default_factory=dict)
    """Place of each load, to the lane it is for."""


class _Worker:
    def __init__(self, function: Function, shape: LaunchShape, whole: set[str]) -> None:
        self.threads = shape.threads
        # What lanes have computed one after the other may differ after all.
        together = {op.dst for b in function.blocks if b.label in whole for op in b.ops}
        rows = estimate_rows(function, shape.threads)
        self._single = single_assignments(function)
        self._rows = {r: row for r, row in rows.items() if r in together and r in self._single}
        self._ranges = ValueRanges(function, shape)
        self._fresh = function.fresh()

    def rewrite(self, block: BasicBlock) -> BasicBlock:
        """The block without the scratch words that it can do without."""
        dropped: set[int] = set()
        instead: dict[int, list[Op]] = {}
        clean: dict[int, bool] = {}
        for operand, area in self._operands(block):
            store = block.ops[operand.store]
            if not operand.loads:
                # Back to what leaves others alone: it still is.
                if clean.get(area) and store.b == Imm(neutral_word(store.space) or 0):
                    dropped.add(operand.store)
                continue
            new = self._gather(block, operand)
            clean[area] = new is not None
            if new is not None:
                dropped.add(operand.store)
                instead |= new
        ops: list[Op] = []
        for index, op in enumerate(block.ops):
            if index not in dropped:
                ops += instead.get(index, [op])
        return replace(block, ops=tuple(ops))

    def _operands(self, block: BasicBlock) -> list[tuple[_Operand, int]]:
        """What is stored to each area, in order, with the area's address."""
        found: list[tuple[_Operand, int]] = []
        current: dict[int, _Operand] = {}
        for index, op in enumerate(block.ops):
            if op.address is None or neutral_word(op.space) is None:
                continue
            if op.name == "st":
                assert isinstance(op.address.b, Imm)
                area = op.address.b.value
                if not area:
                    # A register has the whole address: nobody knows what it leaves behind.
                    return []
                current[area] = _Operand(index, op.b)
                found.append((current[area], area))
            elif op.address.name == "add" and isinstance(op.address.a, Imm):
                place = op.address.a.value
                area = max((a for a in current if a <= place), default=-1)
                if area >= 0:
                    current[area].loads[index] = (place - area) // 4
        return found

    def _gather(self, block: BasicBlock, operand: _Operand) -> dict[int, list[Op]] | None:
        """In place of each load, the operand of its lane; None if there is no short way."""
        lanes = len(operand.loads)
        if sorted(operand.loads.values()) != list(range(lanes)) or self.threads % lanes:
            return None
        before = _Lane(self, block, operand, lanes)
        result: dict[int, list[Op]] = {}
        for index, lane in operand.loads.items():
            made: list[Op] = []
            value = before.value(operand.value, lane, index, made)
            if value is None or sum(op.address is None for op in made) > MAX_OPS:
                return None
            if sum(op.is_memory for op in made) > 1:
                return None
            load = block.ops[index]
            result[index] = [*made, Op("mov", load.dst, value, origin=load.origin)]
        first = min(result)
        result[first] = [*before.setup, *result[first]]
        return result

    def register(self) -> Reg:
        """A fresh register."""
        self._fresh += 1
        return Reg(self._fresh - 1)

    def row(self, value: Value) -> Row:
        """What is known of a value over the lanes."""
        if isinstance(value, Imm):
            return Row(value.value, 0)
        if value is Special.TID:
            return Row(self.threads - 1, 1)
        if isinstance(value, Reg):
            return self._rows.get(value, UNKNOWN)
        return Row(stride=0) if value is Special.CTAID else UNKNOWN

    def definition(self, value: Reg | Pred) -> Op | None:
        """The operation that a register is a name for."""
        return self._single.get(value)

    def same(self, block: BasicBlock, op: Op, until: int) -> bool:
        """Whether a load of the block gives the same at a later place."""
        at = next(i for i, other in enumerate(block.ops) if other is op)
        return not any(
            other.has_effect and may_meet(op, other) and self._overlap(op, other)
            for other in block.ops[at:until]
        )

    def _overlap(self, first: Op, second: Op) -> bool:
        a, b = self._reach(first), self._reach(second)
        return a[0] <= b[1] and b[0] <= a[1]

    def _reach(self, op: Op) -> tuple[int, int]:
        """The bytes that an access may touch, in all lanes."""
        address = op.address
        assert address is not None
        (a, b), (c, d) = self._ranges.of(address.a), self._ranges.of(address.b)
        shift = LEA_SHIFT.get(address.name)
        if shift is None or (b << shift) + d > WORD:
            return 0, WORD
        return (a << shift) + c & ~3, (b << shift) + d | 3


class _Lane:
    """Makes the operands of single lanes; `setup` is what they share."""

    def __init__(self, worker: _Worker, block: BasicBlock, operand: _Operand, lanes: int) -> None:
        self._worker = worker
        self._block = block
        self._lanes = lanes
        self._alone = worker.threads == lanes
        self._inside = {op.dst for op in block.ops[: operand.store]}
        self._bases: dict[Value, Value] = {}
        self._sums: dict[Address, Value] = {}
        self.setup: list[Op] = []

    def value(
        self, value: Value, lane: int, until: int, made: list[Op], depth: int = DEEPEST
    ) -> Value | None:
        """The value that a lane has, in all lanes; what computes it is appended to `made`.

        None if there is none, or only by a chain of more than `depth` operations.
        """
        if value is Special.TID and self._alone:
            return Imm(lane)
        if self._worker.row(value).uniform:
            return value
        op = self._worker.definition(value) if isinstance(value, Reg) else None
        if op is None or op.dst not in self._inside or op.pred is not None or op.stays or not depth:
            return None
        if op.address is not None:
            if op.name not in LOADS or not self._worker.same(self._block, op, until):
                return None
            address = self._address(op.address, lane, until, depth - 1)
            if address is None:
                return None
            new = replace(op, address=address)
        else:
            change: dict[Value, Value] = {}
            for use in op.values():
                found = self.value(use, lane, until, made, depth - 1)
                if found is None:
                    return None
                change[use] = found
            new = op.with_values(change)
            simple = simplify(new.name, new.a, new.b)
            if not isinstance(simple, tuple):
                return simple
            new = replace(new, name=simple[0], a=simple[1], b=simple[2])
        dst = self._worker.register()
        made.append(replace(new, dst=dst))
        return dst

    def _address(self, address: Address, lane: int, until: int, depth: int) -> Address | None:
        """The address that a lane has."""
        if self._alone:
            # Then it is mostly known.
            parts = address.a, address.b
            first, second = (self.value(v, lane, until, [], depth) for v in parts)
            if isinstance(first, Imm) and isinstance(second, Imm):
                place = evaluate(address.name, first.value, second.value)
                return Address("add", Imm(place))
        shift = LEA_SHIFT.get(address.name)
        a, b = self._worker.row(address.a).stride, self._worker.row(address.b).stride
        if shift is None or a is None or b is None:
            return None
        if isinstance(address.b, Imm):
            base = self._base(address.a, a)
            offset = address.b.value + (a * lane << shift) & WORD
            return Address(address.name, base, Imm(offset))
        stride = (a << shift) + b
        if address not in self._sums:
            total = self._worker.register()
            self.setup.append(Op(address.name, total, address.a, address.b))
            self._sums[address] = self._base(total, stride)
        return Address("add", self._sums[address], Imm(stride * lane & WORD))

    def _base(self, value: Value, stride: int) -> Value:
        """What lane 0 has of a value that counts up from lane to lane."""
        if stride == 0:
            return value
        if value not in self._bases:
            base = self._worker.register()
            if self._alone:
                own = self._worker.register()
                self.setup += [
                    Op("mullo", own, Special.TID, Imm(stride & WORD)),
                    Op("sub", base, value, own),
                ]
            elif value is Special.TID:
                self.setup.append(Op("and", base, value, Imm(-self._lanes & WORD)))
            else:
                own, scaled = self._worker.register(), self._worker.register()
                self.setup += [
                    Op("and", own, Special.TID, Imm(self._lanes - 1)),
                    Op("mullo", scaled, own, Imm(stride & WORD)),
                    Op("sub", base, value, scaled),
                ]
            self._bases[value] = base
        return self._bases[value]
