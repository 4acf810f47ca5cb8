"""Keeps the lanes of a warp together at warp operations, in branches and loops.

Lanes that wait do not hold up those of their pass that took another way. When all lanes of a warp
wait, those at the smallest block go on. Blocks are in order, so lanes that could still come there
wait at smaller ones: except for the next round of a loop. So where lanes may get out of step in a
loop, all wait at its end, a block behind all others of the loop, before any begins another round.

Operations that keep a word for each pass (see warp_scratch) need the lanes of a pass to arrive
together. They begin with a wait, which is needed only where lanes may come from several places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qgpu_isa.program import Status

from qgpu_ptx.divergence import (
    Graph,
    flow,
    parting_branches,
    postdominators,
    reaches,
    region,
    restrict,
)
from qgpu_ptx.expansions.warp_scratch import ARRIVE
from qgpu_ptx.flow_graph import dominators, natural_loops
from qgpu_ptx.ir import EXIT, BasicBlock, Edge, Function
from qgpu_ptx.virtual_blocks import block_order

ROUND = "round"
Change = Callable[[Edge], Edge]


def drop_arrivals(function: Function) -> Function:
    """Removes the waits before operations where the lanes of a pass come together anyway."""
    parted = _may_be_parted(function)

    def change(edge: Edge) -> Edge:
        arrives = edge.target is not None and edge.target.startswith(ARRIVE + ".")
        return Edge(edge.target) if arrives and edge.target not in parted else edge

    return _with_edges(function, change)


def _may_be_parted(function: Function) -> set[str]:
    """Blocks at which lanes may come one after the other: waits in branches part them."""
    whole = flow(function)
    waits = _waits(function, Status.WARP)
    # Lanes that come to no wait any more part from nobody.
    graph = restrict(whole, reaches(whole, waits | _waits(function, Status.CTA)))
    ends = {label for label, targets in graph.items() if targets != whole[label]}
    over = postdominators(graph, ends)
    parted: set[str] = set()
    for branch in parting_branches(function) & set(graph):
        if len(graph[branch]) > 1:
            inside = region(graph, branch, over)
            if (inside | {branch}) & waits:
                parted |= inside
    backward: dict[str, tuple[str, ...]] = dict.fromkeys(graph, ())
    for label, targets in graph.items():
        for target in targets:
            backward[target] += (label,)
    return reaches(backward, parted)


def blocks_of_whole_passes(function: Function) -> set[str]:
    """Blocks that all lanes of a pass run together, each time that one of them does.

    Lanes that a branch or a bank has parted meet again where all ways lead, since a pass runs its
    smallest block first; but not before a loop's next round, which begins at a smaller one.
    """
    graph = flow(function)
    order = {label: index for index, label in enumerate(block_order(function))}
    above = dominators(function)
    for label, place in order.items():
        if any(order[t] <= place and t not in above[label] for t in graph[label]):
            return set()
    ends = {b.label for b in function.blocks if any(e.target is None for e in b.terminator.edges)}
    over = postdominators(graph, ends)
    apart = _may_be_parted(function)
    for branch in parting_branches(function):
        apart |= region(graph, branch, over)
    return set(order) - apart.union(*natural_loops(function).values())


def close_rounds(function: Function) -> Function:
    """Makes the lanes of a warp wait for each other between the rounds of a loop."""
    waits = _waits(function, Status.WARP)
    if not waits:
        return function
    graph = flow(function)
    parting = parting_branches(function)
    for head, loop in natural_loops(function).items():
        if loop & waits and _out_of_step(graph, head, loop, parting, waits):
            function = _close(function, head, loop)
    return function


def _out_of_step(
    graph: Graph, head: str, loop: set[str], parting: set[str], waits: set[str]
) -> bool:
    """Whether lanes of one round may be parted while some of them wait."""
    inside = restrict(graph, loop)
    ends = {label for label, targets in inside.items() if head in targets}
    inside = {label: tuple(t for t in ts if t != head) for label, ts in inside.items()}
    over = postdominators(inside, ends)
    for branch in parting & loop:
        if len(inside[branch]) + (branch in ends) > 1:
            parted = region(inside, branch, over)
            if (parted | {branch}) & waits:
                return True
    return False


def _close(function: Function, head: str, loop: set[str]) -> Function:
    label = f"{ROUND}.{head}"

    def change(edge: Edge) -> Edge:
        if edge.target != head:
            return edge
        return Edge(label, edge.status if edge.status is Status.CTA else Status.WARP)

    blocks: list[BasicBlock] = []
    for block in function.blocks:
        blocks.append(_with_block_edges(block, change) if block.label in loop else block)
    back = BasicBlock(label, (), replace(function.block(head).terminator, taken=Edge(head),
                                         cond=None, next=EXIT, trap=False))  # fmt: skip
    return replace(function, blocks=(*blocks, back))


def _waits(function: Function, status: Status) -> set[str]:
    """Blocks with a way out that waits for the warp or the CTA."""
    return {
        block.label
        for block in function.blocks
        if any(edge.status is status for edge in block.terminator.edges)
    }


def _with_edges(function: Function, change: Change) -> Function:
    return replace(
        function, blocks=tuple(_with_block_edges(block, change) for block in function.blocks)
    )


def _with_block_edges(block: BasicBlock, change: Change) -> BasicBlock:
    end = block.terminator
    return replace(block, terminator=replace(end, taken=change(end.taken), next=change(end.next)))
