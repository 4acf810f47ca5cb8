"""Pointers that a loop advances become a fixed base and a distance that all lanes share.

Compilers replace a[i] by a pointer that each round advances. A row of pointers takes many tokens
to send back each round, a distance at most a few; slot A0 adds the two for free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qgpu_ptx.flow_graph import dominators
from qgpu_ptx.ir import ZERO, Address, BasicBlock, Function, Imm, Op, Pred, Reg
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.row_costs import UNKNOWN, estimate_rows

Place = tuple[str, int]
"""An operation: its block and its position there."""

_LEA = {1: "add", 2: "lea1", 4: "lea2", 8: "lea3"}


@dataclass(frozen=True)
class _Counter:
    """A register with one start and one step by a constant, both at the given places.

    `sum` is the register in which the next value is computed before it is copied by the step.
    """

    register: Reg
    start: Place
    step: Place
    amount: int
    sum: Reg | None


def split_pointers(function: Function, shape: LaunchShape) -> Function:
    """Splits every loop pointer that is used in addresses alone."""
    rows = estimate_rows(function, shape.threads)
    counters = _find_counters(function)
    for counter in counters:
        offset = _address_offset(function, counter)
        initial = _op(function, counter.start).a
        if offset is None or not isinstance(initial, Reg):
            continue
        row = rows.get(initial, UNKNOWN)
        # Rows that are one token anyway gain nothing.
        if not row.uniform and row.stride not in (1, 4):
            function = _split(function, counter, offset, counters)
            return split_pointers(function, shape)
    return function


def _op(function: Function, place: Place) -> Op:
    return function.block(place[0]).ops[place[1]]


def _find_counters(function: Function) -> list[_Counter]:
    places: dict[Reg | Pred, list[Place]] = {}
    for block in function.blocks:
        for index, op in enumerate(block.ops):
            if op.dst is not None:
                places.setdefault(op.dst, []).append((block.label, index))
    over = dominators(function)
    result = []
    for register, where in places.items():
        if len(where) != 2 or not isinstance(register, Reg):
            continue
        for start, step in (where, where[::-1]):
            first, second = _op(function, start), _op(function, step)
            total = second.a if second.name == "mov" and isinstance(second.a, Reg) else None
            if second.guard is None and total is not None and len(places.get(total, ())) == 1:
                second = _op(function, places[total][0])
            advances = (
                second.name == "add"
                and second.a == register
                and isinstance(second.b, Imm)
                and second.guard is None
            )
            before = start[0] in over[step[0]] and start[0] != step[0]
            if advances and before and first.name == "mov" and first.guard is None:
                assert isinstance(second.b, Imm)
                result.append(_Counter(register, start, step, second.b.value, total))
    return result


def _address_offset(function: Function, counter: _Counter) -> int | None:
    """The one constant that every address adds to the pointer; None if it is used otherwise."""
    offsets = set()
    if counter.sum is not None and _use_count(function, counter.sum) != 1:
        return None
    for block in function.blocks:
        for index, op in enumerate(block.ops):
            own = (block.label, index) == counter.step or op.dst == counter.sum is not None
            if counter.register not in op.uses() or own:
                continue
            address = op.address
            if address is None or op.b == counter.register or address.name != "add":
                return None
            if address.a != counter.register or not isinstance(address.b, Imm):
                return None
            offsets.add(address.b.value)
    return offsets.pop() if len(offsets) == 1 else None


def _use_count(function: Function, register: Reg) -> int:
    return sum(use == register for op in function.ops() for use in op.uses())


def _split(
    function: Function, counter: _Counter, offset: int, counters: list[_Counter]
) -> Function:
    fresh = function.fresh()
    base = Reg(fresh)
    start = _op(function, counter.start)
    shared = _companion(function, counter, counters)
    if shared is None:
        distance, address = Reg(fresh + 1), Address("add", base, Reg(fresh + 1))
        begin: tuple[Op, ...] = (Op("mov", distance, ZERO, origin=start.origin),)
        advance: Op | None = Op("add", distance, distance, Imm(counter.amount))
    else:
        other, ratio, skipped = shared
        address = Address(_LEA[ratio], other.register, base)
        offset = offset - skipped & 0xFFFFFFFF
        begin, advance = (), None
    # `add` with 0 stands for a copy until `propagate` runs; legal everywhere.
    first = (Op("add", base, start.a, Imm(offset), origin=start.origin), *begin)

    def rewrite(block: BasicBlock) -> BasicBlock:
        ops: list[Op] = []
        for index, op in enumerate(block.ops):
            place = block.label, index
            if place == counter.start:
                ops += first
            elif place == counter.step:
                ops += [replace(advance, origin=op.origin)] if advance is not None else []
            elif op.address is not None and op.address.a == counter.register:
                ops.append(replace(op, address=address))
            else:
                ops.append(op)
        return replace(block, ops=tuple(ops))

    return replace(function, blocks=tuple(rewrite(b) for b in function.blocks))


def _companion(
    function: Function, counter: _Counter, counters: list[_Counter]
) -> tuple[_Counter, int, int] | None:
    """A counter that runs beside this one: it, the ratio of steps, what its start stands for."""
    for other in counters:
        initial = _op(function, other.start).a
        if other == counter or other.step[0] != counter.step[0] or not isinstance(initial, Imm):
            continue
        if other.start[0] != counter.start[0] or not other.amount:
            continue
        ratio, rest = divmod(counter.amount, other.amount)
        if rest or ratio not in _LEA:
            continue
        if not _step_together(function, counter, other):
            continue
        return other, ratio, initial.value * ratio
    return None


def _step_together(function: Function, counter: _Counter, other: _Counter) -> bool:
    """Whether no address is computed between the steps of the two counters."""
    block = function.block(counter.step[0])
    low, high = sorted((counter.step[1], other.step[1]))
    between = block.ops[low:high]
    return not any(op.address is not None and op.address.a == counter.register for op in between)
