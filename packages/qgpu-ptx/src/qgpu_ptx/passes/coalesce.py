"""Gives source and destination of a copy one name where their values never differ while live."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import terminator_uses
from qgpu_ptx.ir import Function, Op, Pred, Reg
from qgpu_ptx.liveness import live_out
from qgpu_ptx.passes.rename_locals import rename_block

Item = Reg | Pred


def coalesce(function: Function) -> Function:
    """Removes copies between registers, and between predicates, that do not interfere."""
    clashes = interference(function)
    names: dict[Item, Item] = {}

    def find(item: Item) -> Item:
        while item in names:
            item = names[item]
        return item

    for op in function.ops():
        source = copied(op)
        if source is None or op.dst is None:
            continue
        a, b = find(op.dst), find(source)
        if a != b and b not in clashes.get(a, set()):
            names[b] = a
            merged = clashes.pop(b, set())
            clashes.setdefault(a, set()).update(merged)
            for other in merged:
                clashes[other].discard(b)
                clashes[other].add(a)
    final = {item: find(item) for item in names}
    blocks = []
    for block in function.blocks:
        block = rename_block(block, final)
        kept = tuple(op for op in block.ops if op.dst is None or copied(op) != op.dst)
        blocks.append(replace(block, ops=kept))
    return replace(function, blocks=tuple(blocks))


def copied(op: Op) -> Item | None:
    """What an unguarded operation copies unchanged, None if it is no copy."""
    if op.name == "mov" and op.pred is None and isinstance(op.a, Reg):
        return op.a
    if op.name == "setp" and isinstance(op.dst, Pred) and op.pred and not op.pred.negate:
        return op.pred.pred
    return None


def interference(function: Function) -> dict[Item, set[Item]]:
    """Pairs of which one is set while the other may still be read with another value."""
    result: dict[Item, set[Item]] = {}
    out = live_out(function)
    for block in function.blocks:
        live = out[block.label] | set(terminator_uses(block))
        for op in reversed(block.ops):
            dst = op.dst
            if dst is not None:
                others = {x for x in live if type(x) is type(dst)} - {dst, copied(op)}
                result.setdefault(dst, set()).update(others)
                for other in others:
                    result.setdefault(other, set()).add(dst)
                if op.guard is None:
                    live.discard(dst)
            live |= set(op.uses())
    return result
