"""Which registers and predicates may still be read, at the borders of blocks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from qgpu_ptx.flow_graph import terminator_uses
from qgpu_ptx.ir import Function, Pred, Reg

Item = Reg | Pred
Node = TypeVar("Node", bound=Hashable)


def live_out(function: Function) -> dict[str, set[Item]]:
    """What is live at the end of each block (before its terminator's own reads)."""
    reads: dict[str, set[Item]] = {}
    writes: dict[str, set[Item]] = {}
    for block in function.blocks:
        read: set[Item] = set()
        written: set[Item] = set()
        for op in block.ops:
            read |= set(op.uses()) - written
            if op.dst is not None and op.guard is None:
                written.add(op.dst)
        read |= set(terminator_uses(block)) - written
        reads[block.label], writes[block.label] = read, written
    successors = {b.label: b.terminator.targets for b in function.blocks}
    return solve_liveness(successors, reads, writes)


def solve_liveness(
    successors: Mapping[Node, Sequence[Node]],
    reads: Mapping[Node, set[Item]],
    writes: Mapping[Node, set[Item]],
) -> dict[Node, set[Item]]:
    """Live-out sets: backwards data flow to the least fixed point."""
    live_in = {node: set(reads[node]) for node in successors}
    out: dict[Node, set[Item]] = {node: set() for node in successors}
    changed = True
    while changed:
        changed = False
        for node in reversed(list(successors)):
            new = set().union(*(live_in[s] for s in successors[node]))
            if new != out[node]:
                out[node] = new
                live_in[node] = reads[node] | (new - writes[node])
                changed = True
    return out
