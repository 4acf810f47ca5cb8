"""Moves what only one way out of a branch reads to that way.

Lanes that take the other way do not compute it, and it need not be sent back before the branch.
Rows that are regular over the lanes stay: they are short records only while all lanes compute them.
"""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import dominators, single_assignments, terminator_uses
from qgpu_ptx.ir import BasicBlock, Function, Op, Pred, Reg
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.liveness import live_out
from qgpu_ptx.row_costs import estimate_rows

Item = Reg | Pred
Places = dict[Item, set[str]]
"""The blocks in which each register and predicate is read."""


def sink_values(function: Function, shape: LaunchShape) -> Function:
    """Repeats until nothing moves."""
    rows = estimate_rows(function, shape.threads)
    regular: set[Item] = {r for r, row in rows.items() if row.uniform or row.stride in (1, 4)}
    while True:
        new = _once(function, regular)
        if new is None:
            return function
        function = new


def _once(function: Function, regular: set[Item]) -> Function | None:
    """One group of operations moved from a block to a successor, None if there is none."""
    single = single_assignments(function)
    readers = _readers(function)
    predecessors = function.predecessors()
    over = dominators(function)
    live = live_out(function)
    # Lanes run the first block of an atomic step again and again.
    repeated = {block.store_of for block in function.blocks}
    for block in function.blocks:
        if block.terminator.cond is None:
            continue
        for label in block.terminator.targets:
            if label in repeated or predecessors[label] != [block.label]:
                continue
            below = {b.label for b in function.blocks if label in over[b.label]}
            moved = _movable(block, below, single, regular, readers, live[block.label])
            if moved:
                return _move(function, block.label, label, moved)
    return None


def _readers(function: Function) -> Places:
    readers: Places = {}
    for block in function.blocks:
        for item in [*(use for op in block.ops for use in op.uses()), *terminator_uses(block)]:
            readers.setdefault(item, set()).add(block.label)
    return readers


def _movable(
    block: BasicBlock,
    below: set[str],
    single: dict[Item, Op],
    regular: set[Item],
    readers: Places,
    live: set[Item],
) -> set[Item]:
    """Results of operations that can move: all they read is known, moves too or is there anyway."""
    makers = {op.dst: op for op in block.ops if op.dst is not None}
    inside: dict[Item, list[Op]] = {}
    for op in block.ops:
        for use in op.uses():
            inside.setdefault(use, []).append(op)
    moved: set[Item] = {
        dst
        for dst, op in makers.items()
        if dst in single and dst not in regular and not op.is_memory and not op.stays
        and dst in readers and readers[dst] <= below | {block.label}
        and dst not in set(terminator_uses(block))
    }  # fmt: skip
    while True:
        staying = live - moved
        kept = {
            dst
            for dst in moved
            if all(reader.dst in moved for reader in inside.get(dst, ()))
            and all(_there(use, moved, staying, single) for use in makers[dst].uses())
        }
        if kept == moved:
            return moved
        moved = kept


def _there(item: Item, moved: set[Item], staying: set[Item], single: dict[Item, Op]) -> bool:
    return item in moved or (item in staying and item in single)


def _move(function: Function, source: str, target: str, moved: set[Item]) -> Function:
    group = tuple(op for op in function.block(source).ops if op.dst in moved)
    blocks = []
    for block in function.blocks:
        if block.label == source:
            block = replace(block, ops=tuple(op for op in block.ops if op.dst not in moved))
        elif block.label == target:
            block = replace(block, ops=group + block.ops)
        blocks.append(block)
    return replace(function, blocks=tuple(blocks))
