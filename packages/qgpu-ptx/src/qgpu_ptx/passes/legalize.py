"""What a slot cannot hold: two different immediates, or a comparison of two."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.ir import ZERO, Function, Imm, Op, Reg


def legalize(function: Function) -> Function:
    """Moves the second of two immediates into a register."""
    fresh = function.fresh()
    blocks = []
    for block in function.blocks:
        ops: list[Op] = []
        for op in block.ops:
            immediates = {v for v in (op.a, op.b) if isinstance(v, Imm) and v != ZERO}
            if op.reads_a and op.reads_b and len(immediates) == 2:
                register = Reg(fresh)
                fresh += 1
                ops.append(Op("mov", register, op.a, origin=op.origin))
                op = replace(op, a=register)
            ops.append(op)
        blocks.append(replace(block, ops=tuple(ops)))
    return replace(function, blocks=tuple(blocks))
