"""Program images: blocks of up to five instructions, one per slot, and a branch."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from qgpu_isa.errors import ProgramError
from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.machine_config import MachineConfig


class Source(IntEnum):
    """Where an operand comes from; the value is its 3-bit code."""

    ZERO = 0
    REG = 1
    IMM = 2
    TID = 3
    CTAID = 4
    FWD0 = 5
    FWD1 = 6
    FWD2 = 7


FORWARDS: dict[Slot, dict[Source, Slot]] = {
    Slot.A0: {},
    Slot.MEM: {},
    Slot.A1: {Source.FWD0: Slot.A0, Source.FWD1: Slot.MEM},
    Slot.X: {Source.FWD0: Slot.A0, Source.FWD1: Slot.MEM},
    Slot.A2: {Source.FWD0: Slot.A1, Source.FWD1: Slot.MEM, Source.FWD2: Slot.X},
}
"""Results of earlier slots of the same block that a slot's operands can take."""


@dataclass(frozen=True)
class Operand:
    """An operand: `register` counts for REG alone. IMM reads the slot's one immediate."""

    source: Source = Source.ZERO
    register: int = 0


class DstKind(IntEnum):
    """Where a slot's result goes besides forwarding."""

    NONE = 0
    REG = 1
    PRED = 2


@dataclass(frozen=True)
class Predicate:
    """A predicate operand: index None means always true."""

    index: int | None = None
    negate: bool = False


@dataclass(frozen=True)
class SlotCode:
    """One instruction in its slot.

    A0, A1, X, A2 read `a` and `b`. MEM reads its address from A0's result and its store data from
    `b`. Unless the instruction selects by it, `pred` guards the slot: where it does not hold,
    the destination keeps its value (and MEM does not access memory). The result that is
    forwarded to later slots is not guarded.
    """

    name: str
    a: Operand = Operand()
    b: Operand = Operand()
    imm: int = 0
    dst: DstKind = DstKind.NONE
    dst_index: int = 0
    pred: Predicate = Predicate()


class Status(IntEnum):
    """What a lane does next; the value is its 2-bit code in the program-counter rows."""

    RUN = 0
    WARP = 1
    CTA = 2
    EXIT = 3


class CondSource(IntEnum):
    """Where a branch condition comes from."""

    ALWAYS = 0
    PRED = 1
    FLAG_A1 = 2
    FLAG_A2 = 3


@dataclass(frozen=True)
class Branch:
    """The end of a block: lanes where the condition holds go to `taken`, the others to `next`.

    A status other than RUN makes the lanes that go that way wait for their warp or CTA before
    they continue at the target, or exit. `trap` faults if any active lane takes the branch.
    """

    cond: CondSource = CondSource.ALWAYS
    pred: int = 0
    negate: bool = False
    taken: int = 0
    taken_status: Status = Status.RUN
    next: int = 0
    next_status: Status = Status.RUN
    trap: bool = False


@dataclass(frozen=True)
class Block:
    """A machine block. `source` names where it came from (PTX line, CUDA line) for messages."""

    slots: dict[Slot, SlotCode] = field(default_factory=dict)
    branch: Branch = field(default_factory=Branch)
    source: tuple[str, ...] = ()

    def live_slots(self) -> tuple[Slot, ...]:
        """Slots whose result is sent back, in the order of emission."""
        return tuple(s for s in Slot if s in self.slots and self.slots[s].dst != DstKind.NONE)


@dataclass(frozen=True)
class ProgramImage:
    """A program for a machine; execution starts at block 0."""

    config: MachineConfig
    blocks: tuple[Block, ...]
    name: str = "program"

    def verify(self) -> None:
        """Checks the image against the machine.

        Raises:
            ProgramError: naming the block, slot and what is wrong.
        """
        if not 1 <= len(self.blocks) <= self.config.rom_blocks:
            raise ProgramError(
                f"{self.name}: {len(self.blocks)} blocks; machine '{self.config.name}' holds "
                f"{self.config.rom_blocks}"
            )
        for index, block in enumerate(self.blocks):
            where = f"{self.name}: block {index}"
            for slot, code in block.slots.items():
                verify_slot(self.config, f"{where}, slot {slot.name}", slot, code)
            _verify_branch(self, where, block.branch)
            if Slot.MEM in block.slots and Slot.A0 not in block.slots:
                raise ProgramError(f"{where}: MEM needs an address from slot A0")


def verify_slot(config: MachineConfig, where: str, slot: Slot, code: SlotCode) -> None:
    """Checks one slot against the machine; `where` begins the message.

    Raises:
        ProgramError: saying what is wrong.
    """
    if code.name not in INSTRUCTIONS:
        raise ProgramError(f"{where}: unknown instruction '{code.name}'")
    instruction = INSTRUCTIONS[code.name]
    if slot not in instruction.slots:
        allowed = ", ".join(s.name for s in instruction.slots)
        raise ProgramError(f"{where}: '{code.name}' can only stand in {allowed}")
    for operand in (code.a, code.b):
        if operand.source >= Source.FWD0 and operand.source not in FORWARDS[slot]:
            raise ProgramError(f"{where}: no such forwarded operand")
        if not 0 <= operand.register < config.registers:
            raise ProgramError(f"{where}: register r{operand.register} does not exist")
    limit = {DstKind.REG: config.registers, DstKind.PRED: config.predicates}.get(code.dst)
    if limit is not None and not 0 <= code.dst_index < limit:
        raise ProgramError(f"{where}: destination {code.dst_index} does not exist")
    if code.dst == DstKind.PRED and not instruction.is_compare:
        raise ProgramError(f"{where}: '{code.name}' cannot write a predicate")
    if code.pred.index is not None and not 0 <= code.pred.index < config.predicates:
        raise ProgramError(f"{where}: predicate p{code.pred.index} does not exist")
    if not 0 <= code.imm < 1 << 32:
        raise ProgramError(f"{where}: immediate {code.imm} is not a 32-bit word")


def _verify_branch(image: ProgramImage, where: str, branch: Branch) -> None:
    for target in (branch.taken, branch.next):
        if not 0 <= target < len(image.blocks):
            raise ProgramError(f"{where}: branch to block {target}, which does not exist")
    if branch.cond == CondSource.PRED and not 0 <= branch.pred < image.config.predicates:
        raise ProgramError(f"{where}: predicate p{branch.pred} does not exist")
