"""Decides between two ways to do the same: for all lanes of a pass together, or for one lane."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import assignment_counts, dominators, single_assignments
from qgpu_ptx.ir import Function, Imm, Op, Reg, Special, Terminator, Value
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.passes.remove_dead import remove_dead
from qgpu_ptx.row_costs import UNKNOWN, Row, estimate_rows

OWN_SPACES = ("combine ", "earlier ")
"""How the spaces of the compiler's own words begin."""


def choose_ways(function: Function, shape: LaunchShape) -> Function:
    """Takes the first way, except where only one thread of the CTA can come."""
    alone = _single_thread_blocks(function, shape)
    counts = assignment_counts(function)
    blocks = []
    for block in function.blocks:
        end = block.terminator
        if end.cond is not None and not counts[end.cond.pred]:
            way = end.next if block.label in alone else end.taken
            block = replace(block, terminator=Terminator(way, origin=end.origin))
        blocks.append(block)
    return drop_unread(replace(function, blocks=tuple(blocks)))


def _single_thread_blocks(function: Function, shape: LaunchShape) -> set[str]:
    """Blocks behind a branch that only one thread takes, such as `tid == 0`."""
    rows = estimate_rows(function, shape.threads)
    single = single_assignments(function)
    over = dominators(function)
    predecessors = function.predecessors()
    found: set[str] = set()
    for block in function.blocks:
        end = block.terminator
        if end.cond is None or end.trap:
            continue
        test = single.get(end.cond.pred)
        if test is None or not _one_thread(test, rows):
            continue
        edge = end.taken if (test.name == "seteq") != end.cond.negate else end.next
        if edge.target is not None and predecessors[edge.target] == [block.label]:
            found |= {label for label, above in over.items() if edge.target in above}
    return found


def _one_thread(test: Op, rows: dict[Reg, Row]) -> bool:
    """Whether a comparison is for equality of what differs in all threads with what does not."""
    if test.name not in ("seteq", "setne"):
        return False
    return _numbers_threads(test.a, rows) and isinstance(test.b, Imm)


def _numbers_threads(value: Value, rows: dict[Reg, Row]) -> bool:
    if isinstance(value, Reg):
        return bool(rows.get(value, UNKNOWN).stride)
    return value is Special.TID


def drop_unread(function: Function) -> Function:
    """Drops stores to the compiler's own words that no load reads."""
    function = remove_dead(function)
    read = {op.space for op in function.ops() if op.name != "st"}
    blocks = [
        replace(block, ops=tuple(op for op in block.ops if not _unread(op, read)))
        for block in function.blocks
    ]
    return replace(function, blocks=tuple(blocks))


def _unread(op: Op, read: set[str]) -> bool:
    return op.name == "st" and op.space.startswith(OWN_SPACES) and op.space not in read
