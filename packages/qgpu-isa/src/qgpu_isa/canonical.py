"""The canonical form of a program: every field that means nothing is cleared.

Two images that differ only in such fields (the register number of an operand that reads no
register, the immediate of a slot that uses none, the target of lanes that exit, ...) behave alike,
token for token after setup. Listings show canonical images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qgpu_isa.instruction import INSTRUCTIONS
from qgpu_isa.program import (
    Block,
    Branch,
    CondSource,
    DstKind,
    Operand,
    ProgramImage,
    SlotCode,
    Source,
    Status,
)
from qgpu_isa.units import Alu, LoadStore


@dataclass(frozen=True)
class OperandUse:
    """Which operand fields of a slot an instruction reads.

    Attributes:
        a, b: the word operands.
        selector: the predicate selects between values instead of guarding the slot.
    """

    a: bool
    b: bool
    selector: bool


def operand_use(name: str) -> OperandUse:
    """The operands that the named instruction reads."""
    unit = INSTRUCTIONS[name].unit
    if isinstance(unit, LoadStore):
        return OperandUse(a=False, b=unit.store, selector=False)
    if isinstance(unit, Alu) and unit.flag == "pred":
        chooses = unit.result == "choose"
        return OperandUse(a=chooses, b=chooses, selector=True)
    reads_b = unit.reads_b if isinstance(unit, Alu) else True
    return OperandUse(a=True, b=reads_b, selector=False)


def canonical_slot(code: SlotCode) -> SlotCode:
    """The slot with its meaningless fields cleared."""
    use = operand_use(code.name)
    a = _canonical_operand(code.a) if use.a else Operand()
    b = _canonical_operand(code.b) if use.b else Operand()
    return replace(
        code,
        a=a,
        b=b,
        imm=code.imm if Source.IMM in (a.source, b.source) else 0,
        dst_index=0 if code.dst is DstKind.NONE else code.dst_index,
    )


def canonical_branch(branch: Branch) -> Branch:
    """The branch with its meaningless fields cleared."""
    taken, taken_status = _canonical_target(branch.taken, branch.taken_status)
    next_, next_status = _canonical_target(branch.next, branch.next_status)
    trap = branch.trap
    if branch.cond is CondSource.ALWAYS:
        if branch.negate:
            taken, taken_status, trap = next_, next_status, False
        next_, next_status = 0, Status.RUN
    if trap:
        taken, taken_status = 0, Status.RUN
    return Branch(
        cond=branch.cond,
        pred=branch.pred if branch.cond is CondSource.PRED else 0,
        negate=branch.negate and branch.cond is not CondSource.ALWAYS,
        taken=taken,
        taken_status=taken_status,
        next=next_,
        next_status=next_status,
        trap=trap,
    )


def canonical_block(block: Block) -> Block:
    """The block with its meaningless fields cleared and its sources on one line each."""
    sources = (" ".join(source.split()) for source in block.source)
    return Block(
        slots={slot: canonical_slot(code) for slot, code in sorted(block.slots.items())},
        branch=canonical_branch(block.branch),
        source=tuple(source for source in sources if source),
    )


def canonical_image(image: ProgramImage) -> ProgramImage:
    """The image with every block in canonical form; idempotent."""
    return replace(image, blocks=tuple(canonical_block(block) for block in image.blocks))


def _canonical_operand(operand: Operand) -> Operand:
    register = operand.register if operand.source is Source.REG else 0
    return Operand(operand.source, register)


def _canonical_target(target: int, status: Status) -> tuple[int, Status]:
    return (0 if status is Status.EXIT else target), status
