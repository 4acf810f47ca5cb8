"""Splits registers that are set several times in one block: all but the last get new names."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import assignment_counts
from qgpu_ptx.ir import BasicBlock, Function, Op, Pred, PredUse, Reg, Terminator, Value
from qgpu_ptx.liveness import live_out


def rename_locals(function: Function) -> Function:
    """Every unguarded assignment that does not leave its block becomes the only one of its name."""
    counts = assignment_counts(function)
    live = live_out(function)
    fresh = function.fresh()
    blocks = []
    for block in function.blocks:
        last: dict[Reg | Pred, int] = {}
        for index, op in enumerate(block.ops):
            if op.dst is not None:
                last[op.dst] = index
        guarded = {op.dst for op in block.ops if op.guard is not None}
        names: dict[Reg | Pred, Reg | Pred] = {}
        ops: list[Op] = []
        for index, op in enumerate(block.ops):
            op = rename_uses(op, names)
            dst = op.dst
            if dst is not None and counts[dst] > 1 and dst not in guarded:
                if index != last[dst] or dst not in live[block.label]:
                    names[dst] = type(dst)(fresh)
                    fresh += 1
                    op = replace(op, dst=names[dst])
                else:
                    names.pop(dst, None)
            ops.append(op)
        end = rename_terminator(block.terminator, names)
        blocks.append(replace(block, ops=tuple(ops), terminator=end))
    return replace(function, blocks=tuple(blocks))


def rename_uses(op: Op, names: dict[Reg | Pred, Reg | Pred]) -> Op:
    """The operation with the registers that it reads renamed."""
    words: dict[Value, Value] = {}
    for value in op.values():
        if isinstance(value, Reg) and value in names:
            new = names[value]
            assert isinstance(new, Reg)
            words[value] = new
    op = op.with_values(words)
    return replace(op, pred=rename_predicate(op.pred, names)) if op.pred is not None else op


def rename_predicate(use: PredUse, names: dict[Reg | Pred, Reg | Pred]) -> PredUse:
    """The operand with its predicate renamed."""
    new = names.get(use.pred, use.pred)
    assert isinstance(new, Pred)
    return PredUse(new, use.negate)


def rename_terminator(end: Terminator, names: dict[Reg | Pred, Reg | Pred]) -> Terminator:
    """The terminator with its predicate renamed."""
    return replace(end, cond=rename_predicate(end.cond, names)) if end.cond is not None else end


def rename_block(block: BasicBlock, names: dict[Reg | Pred, Reg | Pred]) -> BasicBlock:
    """A block with registers renamed, destinations too."""
    ops = []
    for op in block.ops:
        op = rename_uses(op, names)
        ops.append(replace(op, dst=names.get(op.dst, op.dst)) if op.dst is not None else op)
    return replace(block, ops=tuple(ops), terminator=rename_terminator(block.terminator, names))
