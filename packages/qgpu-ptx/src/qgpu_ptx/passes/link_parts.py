"""Names the address of a load of a byte or half, for the operation that takes the part."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.flow_graph import single_assignments
from qgpu_ptx.ir import ACCESSES, ZERO, Address, Function, Imm, Op, Pred, Reg, Special, Value


def link_parts(function: Function) -> Function:
    """Puts a register, or a constant, in place of `Special.PLACE`.

    Slot A0 computes the address; from there it goes to the load and to the operation in A1.
    """
    single = single_assignments(function)
    fresh = function.fresh()
    places: dict[Reg | Pred, Value] = {}
    blocks = []
    for block in function.blocks:
        ops: list[Op] = []
        last: Value = ZERO
        for op in block.ops:
            address, dst = op.address, op.dst
            if address is not None and dst is not None and _loads_part(op):
                place = address.a
                if (address.name, address.b) != ("add", ZERO) or not _lasts(place, single):
                    place = Reg(fresh)
                    fresh += 1
                    ops.append(Op(address.name, place, address.a, address.b, origin=op.origin))
                    op = replace(op, address=Address("add", place, ZERO))
                places[dst] = last = place
            elif op.b is Special.PLACE:
                named = places.get(op.a) if isinstance(op.a, Reg) else None
                op = replace(op, b=last if named is None else named)
            ops.append(op)
        blocks.append(replace(block, ops=tuple(ops)))
    return replace(function, blocks=tuple(blocks))


def _loads_part(op: Op) -> bool:
    unit = ACCESSES[op.name]
    return unit.load and unit.size < 4


def _lasts(place: Value, single: dict[Reg | Pred, Op]) -> bool:
    return isinstance(place, Imm | Special) or place in single
