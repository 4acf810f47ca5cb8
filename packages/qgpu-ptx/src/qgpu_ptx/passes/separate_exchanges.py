"""Keeps a shuffle from overwriting words that another pass has yet to read.

A shuffle writes, waits for the warp, and reads. Two areas alternate, so the wait of the next one
also protects this one's words; a barrier is added only where the same area may come twice.
"""

from __future__ import annotations

from dataclasses import replace

from qgpu_isa.program import Status

from qgpu_ptx.ir import BasicBlock, Edge, Function, Terminator

PREFIX = "exchange"
"""Begins the `space` of accesses to the areas that several passes share."""


def separate_exchanges(function: Function) -> Function:
    """Splits blocks at a write to an area that may have been read since the last barrier."""
    entry = _read_at_entry(function)
    blocks: list[BasicBlock] = []
    for block in function.blocks:
        blocks += _split(block, set(entry[block.label]))
    return replace(function, blocks=tuple(blocks))


def _after(block: BasicBlock, read: set[str]) -> set[str]:
    for op in block.ops:
        if op.space.startswith(PREFIX):
            if op.name == "ld":
                read.add(op.space)
            elif op.space in read:
                # A barrier will stand here.
                read.clear()
    return read


def _read_at_entry(function: Function) -> dict[str, set[str]]:
    """Areas read since the last barrier, at the start of each block."""
    entry: dict[str, set[str]] = {block.label: set() for block in function.blocks}
    changed = True
    while changed:
        changed = False
        for block in function.blocks:
            after = _after(block, set(entry[block.label]))
            for edge in block.terminator.edges:
                waits = edge.status is not Status.RUN
                if edge.target is not None and not waits and not after <= entry[edge.target]:
                    entry[edge.target] |= after
                    changed = True
    return entry


def _split(block: BasicBlock, read: set[str]) -> list[BasicBlock]:
    result: list[BasicBlock] = []
    label, start = block.label, 0
    for index, op in enumerate(block.ops):
        if not op.space.startswith(PREFIX):
            continue
        if op.name == "ld":
            read.add(op.space)
        elif op.space in read:
            rest = f"{block.label}.apart{index}"
            wait = Terminator(Edge(rest, Status.WARP), origin=op.origin)
            result.append(BasicBlock(label, block.ops[start:index], wait))
            label, start = rest, index
            read = set()
    result.append(replace(block, label=label, ops=block.ops[start:]))
    return result
