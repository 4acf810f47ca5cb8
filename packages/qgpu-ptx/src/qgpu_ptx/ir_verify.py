"""Checks that IR means something: every pass must keep it so."""

from __future__ import annotations

from qgpu_isa.instruction import INSTRUCTIONS, Slot

from qgpu_ptx.ir import ACCESSES, Function, Imm, Op, Pred, Reg
from qgpu_ptx.simplify_op import COMPARES


class IrError(Exception):
    """The compiler made IR that cannot be carried out."""


def verify_ir(function: Function) -> None:
    """Raises IrError naming the block and the operation."""
    labels = [block.label for block in function.blocks]
    if len(set(labels)) != len(labels) or not labels:
        raise IrError(f"{function.name}: labels are missing or not unique")
    for block in function.blocks:
        for target in block.terminator.targets:
            if target not in labels:
                raise IrError(f"{block.label}: goes to '{target}', which does not exist")
        if block.store_of is not None and block.store_of not in labels:
            raise IrError(f"{block.label}: completes '{block.store_of}', which does not exist")
        for op in block.ops:
            problem = _problem(op)
            if problem is not None:
                raise IrError(f"{block.label}: {op}: {problem}")


def _problem(op: Op) -> str | None:
    if op.name != "mov" and op.name not in INSTRUCTIONS:
        return "unknown operation"
    memory = op.name in ACCESSES
    if memory != op.is_memory:
        return "only memory operations have an address"
    if op.address is not None and Slot.A0 not in INSTRUCTIONS[op.address.name].slots:
        return "slot A0 cannot compute this address"
    if op.name == "st" and op.dst is not None:
        return "a store has no result"
    if op.dst is None and not op.has_effect:
        return "the result goes nowhere"
    if isinstance(op.dst, Pred) and op.name not in (*COMPARES, "setp"):
        return "only comparisons set predicates"
    if op.selects and op.pred is None and op.name != "ballot":
        return "nothing to select by"
    for value in op.values():
        if isinstance(value, Imm) and not 0 <= value.value < 1 << 32:
            return f"{value} is no word"
        if isinstance(value, Reg) and value.number < 0:
            return f"{value} is no register"
    return None
