"""Which branches may part the lanes of a warp, and where parted lanes meet again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from qgpu_ptx.flow_graph import assignment_counts
from qgpu_ptx.ir import Function, Op, Pred, Reg, Special, Value

Graph = Mapping[str, tuple[str, ...]]
"""The ways from each block to others; leaving the graph is not one of them."""
END = ""
"""Stands for all that lies behind a graph."""


def flow(function: Function) -> dict[str, tuple[str, ...]]:
    """All blocks with the blocks that may follow."""
    return {b.label: tuple(dict.fromkeys(b.terminator.targets)) for b in function.blocks}


def reaches(graph: Graph, wanted: Iterable[str]) -> set[str]:
    """Blocks from which one of the wanted blocks can be reached, those included."""
    before: dict[str, list[str]] = {label: [] for label in graph}
    for label, targets in graph.items():
        for target in targets:
            before[target].append(label)
    found = set(wanted)
    work = list(found)
    while work:
        for label in before[work.pop()]:
            if label not in found:
                found.add(label)
                work.append(label)
    return found


def restrict(graph: Graph, kept: set[str]) -> dict[str, tuple[str, ...]]:
    """The graph of some of its blocks."""
    return {
        label: tuple(t for t in targets if t in kept)
        for label, targets in graph.items()
        if label in kept
    }


def postdominators(graph: Graph, ends: set[str]) -> dict[str, set[str]]:
    """The blocks that every way from a block out of the graph goes through, itself included.

    `ends` are the blocks from which a way leads out.
    """
    everything = {*graph, END}
    over = {label: set(everything) for label in graph} | {END: {END}}
    changed = True
    while changed:
        changed = False
        for label in reversed(list(graph)):
            targets = [*graph[label], *([END] if label in ends or not graph[label] else [])]
            new = set.intersection(*(over[t] for t in targets)) | {label}
            if new != over[label]:
                over[label] = new
                changed = True
    return over


def region(graph: Graph, branch: str, over: Mapping[str, set[str]]) -> set[str]:
    """Blocks that lanes parted at a branch may be in before they all meet again."""
    meeting = over[branch] - {branch}
    found: set[str] = set()
    work = [t for t in graph[branch] if t not in meeting]
    while work:
        label = work.pop()
        if label not in found:
            found.add(label)
            work += [t for t in graph[label] if t not in meeting]
    return found


def parting_branches(function: Function) -> set[str]:
    """Blocks whose branch may send lanes of a warp different ways."""
    varying = _varying(function)
    return {
        block.label
        for block in function.blocks
        if block.terminator.cond is not None
        and not block.terminator.trap
        and block.terminator.cond.pred in varying
    }


def _varying(function: Function) -> set[Reg | Pred]:
    """Registers and predicates that may differ between the lanes of a warp."""
    counts = assignment_counts(function)
    graph = flow(function)
    ends = {b.label for b in function.blocks if any(e.target is None for e in b.terminator.edges)}
    over = postdominators(graph, ends)
    found: set[Reg | Pred] = set()

    def varies(value: Value | Pred) -> bool:
        return value in (Special.TID, Special.PLACE) or value in found

    controlled: set[str] = set()
    size = -1
    while size != len(found) + len(controlled):
        size = len(found) + len(controlled)
        for block in function.blocks:
            for op in block.ops:
                if op.dst is None:
                    continue
                # What is assigned again after some lanes have left differs from theirs.
                again = block.label in controlled and counts[op.dst] > 1
                if again or _differs(op, varies):
                    found.add(op.dst)
            cond = block.terminator.cond
            if cond is not None and cond.pred in found and not block.terminator.trap:
                controlled |= region(graph, block.label, over)
    return found


def _differs(op: Op, varies: Callable[[Value | Pred], bool]) -> bool:
    # Memory may change between the turns of two passes, and each pass votes for itself.
    return op.is_memory or op.name == "ballot" or any(varies(use) for use in _reads(op))


def _reads(op: Op) -> Iterable[Value | Pred]:
    yield from op.values()
    if op.pred is not None:
        yield op.pred.pred
