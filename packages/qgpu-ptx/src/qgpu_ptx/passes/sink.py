"""Moves operations into the blocks that read their results, or copies them there.

A result that leaves its block is sent back as a row of registers. Where the operands can be read
as well, computing it there takes no row and mostly a slot that is free. What only one thread
needs, only the machine blocks of its pass compute then.
"""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.fit_slots import fit_slots
from qgpu_ptx.flow_graph import assignment_counts, loop_depths, terminator_uses
from qgpu_ptx.ir import BasicBlock, Function, Op, Pred, Reg
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.liveness import live_out
from qgpu_ptx.passes.rename_locals import rename_uses
from qgpu_ptx.row_costs import UNKNOWN, estimate_rows, short_row
from qgpu_ptx.single_thread import single_thread_blocks

Item = Reg | Pred
MAX_BLOCKS = 1
"""Into how many blocks an operation is copied."""


def sink(function: Function, shape: LaunchShape) -> Function:
    """Repeats until nothing moves."""
    while True:
        new = _once(function, shape.threads)
        if new is None:
            return function
        function = new


def _once(function: Function, threads: int) -> Function | None:
    rows = estimate_rows(function, threads)
    alone = single_thread_blocks(function, threads)
    counts = assignment_counts(function)
    depths = loop_depths(function)
    live_in = _live_in(function)
    for block in function.blocks:
        for index, op in enumerate(block.ops):
            if not isinstance(op.dst, Reg) or counts[op.dst] != 1 or not _movable(op):
                continue
            if short_row(rows.get(op.dst, UNKNOWN)):
                continue
            targets = _reading_blocks(function, op.dst) - {block.label}
            if not 1 <= len(targets) <= MAX_BLOCKS:
                continue
            if any(depths[t] > depths[block.label] for t in targets):
                continue
            if not all(set(op.uses()) <= live_in[t] for t in targets):
                continue
            if not all(t in alone or _joins(function, op, t) for t in targets):
                continue
            if _holds(function, block.label, index, op, targets):
                return _move(function, op, targets)
    return None


def _movable(op: Op) -> bool:
    """Copies of constants are cheap to send back, and copies of registers are for `coalesce`."""
    return (
        not (op.is_memory or op.stays)
        and op.pred is None
        and op.name != "mov"
        and op.dst not in set(op.uses())
    )


def _reading_blocks(function: Function, item: Item) -> set[str]:
    return {
        block.label
        for block in function.blocks
        if item in set(terminator_uses(block)) or any(item in set(op.uses()) for op in block.ops)
    }


def _joins(function: Function, op: Op, target: str) -> bool:
    """Whether each reader of a block can share a machine block with the operation."""
    readers = [other for other in function.block(target).ops if op.dst in set(other.uses())]
    assert op.dst is not None
    return all(fit_slots([op, reader], [{}, {op.dst: 0}]) is not None for reader in readers)


def _live_in(function: Function) -> dict[str, set[Item]]:
    out = live_out(function)
    result = {}
    for block in function.blocks:
        live = out[block.label] | set(terminator_uses(block))
        for op in reversed(block.ops):
            if op.dst is not None and op.guard is None:
                live.discard(op.dst)
            live |= set(op.uses())
        result[block.label] = live
    return result


def _holds(function: Function, home: str, index: int, op: Op, targets: set[str]) -> bool:
    """Whether the operands still have their values wherever the targets read the result."""
    operands = set(op.uses())

    def keeps(block: BasicBlock, start: int, stop: int) -> bool:
        return not any(other.dst in operands for other in block.ops[start:stop])

    predecessors = function.predecessors()
    # Blocks at whose end the result is what the operands give: all, until shown otherwise.
    ends = {block.label for block in function.blocks}
    changed = True
    while changed:
        changed = False
        for block in function.blocks:
            if block.label not in ends:
                continue
            if block.label == home:
                good = keeps(block, index + 1, len(block.ops))
            else:
                good = _starts(block.label, predecessors, ends, function) and keeps(
                    block, 0, len(block.ops)
                )
            if not good:
                ends.discard(block.label)
                changed = True
    for label in targets:
        block = function.block(label)
        last = max(
            (i for i, other in enumerate(block.ops) if op.dst in set(other.uses())), default=0
        )
        if not _starts(label, predecessors, ends, function) or not keeps(block, 0, last):
            return False
    return True


def _starts(
    label: str, predecessors: dict[str, list[str]], ends: set[str], function: Function
) -> bool:
    before = predecessors[label]
    return label != function.blocks[0].label and all(p in ends for p in before)


def _move(function: Function, op: Op, targets: set[str]) -> Function:
    assert isinstance(op.dst, Reg)
    fresh = function.fresh()
    blocks = []
    for block in function.blocks:
        ops = list(block.ops)
        if block.label in targets:
            copy = Reg(fresh)
            fresh += 1
            first = next(i for i, other in enumerate(ops) if op.dst in set(other.uses()))
            ops = ops[:first] + [rename_uses(other, {op.dst: copy}) for other in ops[first:]]
            ops.insert(first, replace(op, dst=copy))
        blocks.append(replace(block, ops=tuple(ops)))
    moved = replace(function, blocks=tuple(blocks))
    if _reading_blocks(moved, op.dst):
        return moved
    return replace(
        moved,
        blocks=tuple(
            replace(b, ops=tuple(other for other in b.ops if other.dst != op.dst))
            for b in moved.blocks
        ),
    )
