"""Removes operations whose results do not matter (marks from stores, branches and barriers)."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import terminator_uses
from qgpu_ptx.ir import Function, Op, Pred, Reg


def remove_dead(function: Function) -> Function:
    """Keeps what something that matters reads; cycles that feed only themselves go."""
    makers: dict[Reg | Pred, list[Op]] = {}
    for op in function.ops():
        if op.dst is not None:
            makers.setdefault(op.dst, []).append(op)
    live: set[Reg | Pred] = set()
    work: list[Reg | Pred] = [use for b in function.blocks for use in terminator_uses(b)]
    for op in function.ops():
        if op.has_effect:
            work += [use for use in op.uses() if use != op.dst]
    while work:
        item = work.pop()
        if item not in live:
            live.add(item)
            for op in makers.get(item, ()):
                work += op.uses()
    blocks = []
    for block in function.blocks:
        ops: list[Op] = []
        for op in block.ops:
            if op.dst in live:
                ops.append(op)
            elif op.has_effect:
                ops.append(replace(op, dst=None))
        blocks.append(replace(block, ops=tuple(ops)))
    return replace(function, blocks=tuple(blocks))
