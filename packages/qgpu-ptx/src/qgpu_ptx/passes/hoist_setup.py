"""Moves what only prepares registers in front of the barrier that precedes it."""

from __future__ import annotations

from dataclasses import replace

from qgpu_isa.program import Status

from qgpu_ptx.ir import BasicBlock, Function


def hoist_setup(function: Function) -> Function:
    """Empties blocks between a barrier and a jump if they touch no memory or other lanes."""
    predecessors = function.predecessors()
    blocks = {block.label: block for block in function.blocks}
    for label, block in list(blocks.items()):
        before = predecessors[label]
        if len(before) != 1 or not block.ops or block.terminator.cond is not None:
            continue
        source = blocks[before[0]]
        edge = source.terminator.taken
        if source.terminator.cond is None and edge.status is not Status.RUN and _pure(block):
            blocks[source.label] = replace(source, ops=source.ops + block.ops)
            blocks[label] = replace(block, ops=())
    return replace(function, blocks=tuple(blocks.values()))


def _pure(block: BasicBlock) -> bool:
    return block.store_of is None and not any(
        op.is_memory or op.name == "ballot" for op in block.ops
    )
