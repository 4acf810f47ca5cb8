"""Control flow: drops unreachable blocks, skips empty ones, joins blocks that follow each other."""

from __future__ import annotations

from dataclasses import replace

from qgpu_isa.program import Status

from qgpu_ptx.ir import EXIT, BasicBlock, Edge, Function


def simplify_flow(function: Function) -> Function:
    """Repeats all simplifications until nothing changes."""
    while True:
        blocks = {block.label: _simplify(block, function) for block in function.blocks}
        new = _join(_reachable(replace(function, blocks=tuple(blocks.values()))))
        if new == function:
            return new
        function = new


def _simplify(block: BasicBlock, function: Function) -> BasicBlock:
    blocks = {b.label: b for b in function.blocks}
    end = block.terminator
    taken = end.taken if end.trap else _follow(end.taken, blocks)
    end = replace(end, taken=taken, next=_follow(end.next, blocks))
    if end.cond is not None and not end.trap:
        if end.taken == end.next:
            return replace(block, terminator=replace(end, cond=None, next=EXIT))
        for cond, to, other in (
            (end.cond, end.taken, end.next), (~end.cond, end.next, end.taken)
        ):  # fmt: skip
            target = blocks.get(to.target) if to.target is not None else None
            if target and not target.ops and _traps(target) and to.status is Status.RUN:
                end = replace(end, cond=cond, taken=EXIT, next=other, trap=True)
                break
    elif end.taken.target is not None and not end.trap and end.taken.status is Status.RUN:
        target = blocks[end.taken.target]
        if not target.ops and _traps(target):
            end = replace(target.terminator, origin=end.origin)
    return replace(block, terminator=end)


def _traps(block: BasicBlock) -> bool:
    return block.terminator.trap and block.terminator.cond is None


def _follow(edge: Edge, blocks: dict[str, BasicBlock]) -> Edge:
    """Where an edge ends if the empty blocks on its way are skipped."""
    seen = set()
    while edge.target is not None and edge.target not in seen:
        seen.add(edge.target)
        block = blocks[edge.target]
        end = block.terminator
        if block.ops or end.cond is not None or end.trap or block.store_of is not None:
            break
        if edge.status is not Status.RUN and end.taken.status is not Status.RUN:
            if end.taken.target is None:
                return end.taken
            break
        edge = end.taken if edge.status is Status.RUN else Edge(end.taken.target, edge.status)
    return edge


def _reachable(function: Function) -> Function:
    blocks = {b.label: b for b in function.blocks}
    found = set()
    work = [function.blocks[0].label]
    while work:
        label = work.pop()
        if label not in found:
            found.add(label)
            work += blocks[label].terminator.targets
    return replace(function, blocks=tuple(b for b in function.blocks if b.label in found))


def _join(function: Function) -> Function:
    """Joins a block to the only block that leads to it."""
    predecessors = function.predecessors()
    blocks = {b.label: b for b in function.blocks}
    completed = {b.store_of for b in function.blocks}
    for label in list(blocks):
        while label in blocks:
            block = blocks[label]
            end = block.terminator
            target = end.taken.target
            if (
                end.cond is not None
                or end.trap
                or target is None
                or target in (label, function.blocks[0].label)
                or end.taken.status is not Status.RUN
                or predecessors[target] != [label]
                # Atomic steps keep their two blocks apart, and others out of them.
                or blocks[target].store_of is not None
                or block.store_of is not None
                or target in completed
                or label in completed
            ):
                break
            after = blocks.pop(target)
            blocks[label] = replace(block, ops=block.ops + after.ops, terminator=after.terminator)
            for successor in after.terminator.targets:
                predecessors[successor] = [
                    label if p == target else p for p in predecessors[successor]
                ]
    return replace(function, blocks=tuple(blocks.values()))
