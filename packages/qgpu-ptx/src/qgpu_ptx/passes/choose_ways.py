"""Decides between two ways to do the same: for all lanes of a pass together, or for one lane."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import assignment_counts
from qgpu_ptx.ir import Function, Op, Terminator
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.passes.remove_dead import remove_dead
from qgpu_ptx.single_thread import single_thread_blocks

OWN_SPACES = ("combine ", "earlier ")
"""How the spaces of the compiler's own words begin."""


def choose_ways(function: Function, shape: LaunchShape) -> Function:
    """Takes the first way, except where only one thread of the CTA can come."""
    alone = single_thread_blocks(function, shape.threads)
    counts = assignment_counts(function)
    blocks = []
    for block in function.blocks:
        end = block.terminator
        if end.cond is not None and not counts[end.cond.pred]:
            way = end.next if block.label in alone else end.taken
            block = replace(block, terminator=Terminator(way, origin=end.origin))
        blocks.append(block)
    return drop_unread(replace(function, blocks=tuple(blocks)))


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
