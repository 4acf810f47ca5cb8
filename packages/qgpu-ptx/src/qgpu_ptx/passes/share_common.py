"""Common subexpressions of one block are computed once (others would cost a live register)."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import single_assignments, stable
from qgpu_ptx.ir import ZERO, Function, Op, Pred, PredUse, Reg
from qgpu_ptx.simplify_op import COMMUTATIVE


def share_common(function: Function) -> Function:
    """Later equal operations become copies, for `propagate` and `remove_dead` to clear up."""
    single = single_assignments(function)
    blocks = []
    for block in function.blocks:
        seen: dict[object, Op] = {}
        ops = []
        for op in block.ops:
            if op.dst in single and not op.is_memory and not op.stays and op.name != "mov":
                operands = [*op.values(), op.pred]
                if all(stable(operand, single) for operand in operands):
                    key = _key(op)
                    if key in seen:
                        op = _copy(op, seen[key])
                    else:
                        seen[key] = op
            ops.append(op)
        blocks.append(replace(block, ops=tuple(ops)))
    return replace(function, blocks=tuple(blocks))


def _key(op: Op) -> object:
    a, b = op.a, op.b
    if op.name in COMMUTATIVE and str(b) < str(a):
        a, b = b, a
    return op.name, type(op.dst), a, b, op.pred


def _copy(op: Op, earlier: Op) -> Op:
    if isinstance(op.dst, Pred):
        assert isinstance(earlier.dst, Pred)
        return replace(op, name="setp", a=ZERO, b=ZERO, pred=PredUse(earlier.dst))
    assert isinstance(earlier.dst, Reg)
    return replace(op, name="mov", a=earlier.dst, b=ZERO, pred=None)
