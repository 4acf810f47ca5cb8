"""Facts about a function's control flow and assignments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from qgpu_ptx.ir import BasicBlock, Function, Op, Pred, PredUse, Reg, Value


def dominators(function: Function) -> dict[str, set[str]]:
    """The blocks that every path to a block goes through, itself included."""
    labels = [block.label for block in function.blocks]
    predecessors = function.predecessors()
    entry = labels[0]
    result = {label: set(labels) for label in labels}
    result[entry] = {entry}
    changed = True
    while changed:
        changed = False
        for label in labels[1:]:
            incoming = [result[p] for p in predecessors[label]]
            new = (set.intersection(*incoming) if incoming else set()) | {label}
            if new != result[label]:
                result[label] = new
                changed = True
    return result


def natural_loops(function: Function) -> dict[str, set[str]]:
    """The blocks of each loop, by its first block."""
    over = dominators(function)
    predecessors = function.predecessors()
    loops: dict[str, set[str]] = {}
    for block in function.blocks:
        for head in block.terminator.targets:
            if head in over[block.label]:
                loops.setdefault(head, set()).update(_loop(head, block.label, predecessors))
    return loops


def loop_depths(function: Function) -> dict[str, int]:
    """In how many loops each block is."""
    depth = {block.label: 0 for block in function.blocks}
    for members in natural_loops(function).values():
        for member in members:
            depth[member] += 1
    return depth


def _loop(head: str, tail: str, predecessors: dict[str, list[str]]) -> set[str]:
    """Blocks of the loop that the edge from `tail` to `head` closes."""
    members = {head, tail}
    work = [tail] if tail != head else []
    while work:
        for before in predecessors[work.pop()]:
            if before not in members:
                members.add(before)
                work.append(before)
    return members


def terminator_uses(block: BasicBlock) -> Iterator[Pred]:
    """Predicates that a block's terminator reads."""
    if block.terminator.cond is not None:
        yield block.terminator.cond.pred


def assignment_counts(function: Function) -> Counter[Reg | Pred]:
    """How many operations set each register and predicate."""
    return Counter(op.dst for op in function.ops() if op.dst is not None)


def single_assignments(function: Function) -> dict[Reg | Pred, Op]:
    """The defining operation of what is set once, without a guard, before every use.

    Such a register is a name for its operation's value, wherever it is read.
    """
    counts = assignment_counts(function)
    where: dict[Reg | Pred, tuple[str, int]] = {}
    found: dict[Reg | Pred, Op] = {}
    for block in function.blocks:
        for index, op in enumerate(block.ops):
            if op.dst is not None and counts[op.dst] == 1 and op.guard is None:
                found[op.dst] = op
                where[op.dst] = (block.label, index)
    over = dominators(function)
    for block in function.blocks:
        uses = [(use, i) for i, op in enumerate(block.ops) for use in op.uses()]
        uses += [(use, len(block.ops)) for use in terminator_uses(block)]
        for use, index in uses:
            if use in found:
                label, start = where[use]
                before = start < index if label == block.label else label in over[block.label]
                if not before:
                    del found[use]
    return found


def lasting_definitions(function: Function) -> dict[Reg | Pred, Op]:
    """Operations of registers that mean the same wherever they are read, loads aside."""
    single = single_assignments(function)
    return {
        item: op
        for item, op in single.items()
        if not op.is_memory and all(stable(v, single) for v in op.values())
    }


def define_here(here: dict[Reg | Pred, Op], op: Op, lasting: dict[Reg | Pred, Op]) -> None:
    """Keeps the definitions that hold behind an operation: lasting ones, and the block's own."""
    changed = op.dst
    if changed is None or changed in lasting:
        return
    for item, definition in list(here.items()):
        if item not in lasting and (item == changed or changed in definition.uses()):
            del here[item]
    if not op.is_memory and op.guard is None and changed not in op.uses():
        here[changed] = op


def maker(value: Value, known: Mapping[Reg | Pred, Op]) -> Op:
    """The operation that makes a value; a copy where that is not known."""
    op = known.get(value) if isinstance(value, Reg) else None
    return Op("mov", a=value) if op is None else op


def stable(value: Value | PredUse | None, single: dict[Reg | Pred, Op]) -> bool:
    """Whether an operand means the same wherever its definition reaches."""
    if isinstance(value, PredUse):
        return value.pred in single
    return not isinstance(value, Reg) or value in single
