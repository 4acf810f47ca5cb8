"""What a slot cannot hold: two different immediates, or a comparison of two."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.ir import ZERO, Address, Function, Imm, Op, Reg
from qgpu_ptx.simplify_op import evaluate


def legalize(function: Function) -> Function:
    """Moves the second of two immediates into a register; of two in an address it makes one."""
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
            if op.address is not None:
                op = replace(op, address=_one_immediate(op.address))
            ops.append(op)
        blocks.append(replace(block, ops=tuple(ops)))
    return replace(function, blocks=tuple(blocks))


def _one_immediate(address: Address) -> Address:
    if isinstance(address.a, Imm) and isinstance(address.b, Imm):
        return Address("add", Imm(evaluate(address.name, address.a.value, address.b.value)), ZERO)
    return address
