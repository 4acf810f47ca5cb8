"""Random words and legal slots, drawn from a `random.Random`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from qgpu_isa.canonical import canonical_slot
from qgpu_isa.instruction import INSTRUCTIONS, Instruction, Slot
from qgpu_isa.machine_config import WORD_MASK, MachineConfig
from qgpu_isa.program import FORWARDS, DstKind, Operand, Predicate, SlotCode, Source
from qgpu_isa.units import LoadStore

CORNER_WORDS = (
    *(0, 1, 2, 3, 4, 7, 8, 15, 16, 30, 31, 32, 33, 63, 64, 255, 256),
    *(0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0x80000001),
    *(WORD_MASK, WORD_MASK - 1, WORD_MASK - 31, 0xFFFF8000, 0xFFFF7FFF),
    *(0x55555555, 0xAAAAAAAA, 0x00FF00FF),
)
"""Words at which carries, signs, shift amounts and record formats change."""


def random_word(rng: random.Random) -> int:
    """A word: a corner, near a power of two, of few bits, or any."""
    kind = rng.randrange(8)
    if kind < 2:
        return rng.choice(CORNER_WORDS)
    if kind == 2:
        return ((1 << rng.randrange(33)) + rng.randrange(-2, 3)) & WORD_MASK
    if kind < 6:
        value = rng.getrandbits(rng.choice((1, 4, 6, 8, 12, 16, 20, 24, 28)))
        return -value & WORD_MASK if kind == 5 else value
    return rng.getrandbits(32)


@dataclass
class SlotMaker:
    """Makes legal slots for one machine.

    Attributes:
        live: chance that a slot's result is sent back.
        fault: chance that a memory address is anything at all.
        reserved: registers that no slot may write.
    """

    config: MachineConfig
    rng: random.Random
    live: float = 0.4
    fault: float = 0.02
    reserved: set[int] = field(default_factory=set)

    def slots(self, *, memory: float = 0.3, fill: float = 0.45) -> dict[Slot, SlotCode]:
        """The slots of one block, each present with chance `fill`, MEM with chance `memory`."""
        rng = self.rng
        slots: dict[Slot, SlotCode] = {}
        if rng.random() < memory:
            slots[Slot.A0] = self.address()
            slots[Slot.MEM] = self.slot(Slot.MEM, slots)
            if rng.random() < 0.7:
                slots[Slot.A0] = self._within_words(slots[Slot.A0], slots[Slot.MEM])
        elif rng.random() < fill:
            slots[Slot.A0] = self.slot(Slot.A0, slots)
        for slot in (Slot.A1, Slot.X, Slot.A2):
            if rng.random() < fill:
                slots[slot] = self.slot(slot, slots)
        return slots

    def slot(self, slot: Slot, before: dict[Slot, SlotCode]) -> SlotCode:
        """A slot of a block that already holds the slots `before`."""
        flagged = Slot.A1 in before and INSTRUCTIONS[before[Slot.A1].name].is_compare
        choices = [i for i in INSTRUCTIONS if slot in i.slots and (flagged or i.name != "selfwd")]
        return self.instruction(slot, self.rng.choice(choices), before)

    def instruction(
        self, slot: Slot, instruction: Instruction, before: dict[Slot, SlotCode]
    ) -> SlotCode:
        """The instruction in `slot` with random operands, destination and predicate."""
        rng = self.rng
        dst, index = DstKind.NONE, 0
        if rng.random() < self.live:
            dst, index = self.destination(predicate=instruction.is_compare and rng.random() < 0.6)
        selects = instruction.name in ("sel", "setp", "ballot")
        guarded = rng.random() < (0.9 if selects else 0.2)
        return canonical_slot(
            SlotCode(
                name=instruction.name,
                a=self.operand(slot, before),
                b=self.operand(slot, before),
                imm=rng.randrange(40) if slot is Slot.X and rng.random() < 0.6 else self.word(),
                dst=dst,
                dst_index=index,
                pred=self.predicate() if guarded else Predicate(),
            )
        )

    def word(self) -> int:
        """An immediate: any random word, or one that makes rows regular over the lanes."""
        if self.rng.random() < 0.2:
            return self.config.lanes * self.rng.randrange(1 << 6)
        return random_word(self.rng)

    def destination(self, *, predicate: bool) -> tuple[DstKind, int]:
        """A destination that is not reserved."""
        if predicate:
            return DstKind.PRED, self.rng.randrange(self.config.predicates)
        free = [r for r in range(self.config.registers) if r not in self.reserved]
        return (DstKind.REG, self.rng.choice(free)) if free else (DstKind.NONE, 0)

    def predicate(self) -> Predicate:
        """A predicate operand, now and then the constant one."""
        rng = self.rng
        index = rng.randrange(self.config.predicates) if rng.random() < 0.95 else None
        return Predicate(index, rng.random() < 0.5)

    def operand(self, slot: Slot, before: dict[Slot, SlotCode]) -> Operand:
        """An operand; results of slots that are present are read most often."""
        rng = self.rng
        present = [source for source, of in FORWARDS[slot].items() if of in before]
        if present and rng.random() < 0.4:
            return Operand(rng.choice(present))
        if FORWARDS[slot] and rng.random() < 0.03:
            return Operand(rng.choice(list(FORWARDS[slot])))
        plain = (Source.REG, Source.IMM, Source.TID, Source.CTAID, Source.ZERO)
        source = rng.choices(plain, (45, 30, 15, 5, 5))[0]
        register = rng.randrange(self.config.registers) if source is Source.REG else 0
        return Operand(source, register)

    def _within_words(self, address: SlotCode, access: SlotCode) -> SlotCode:
        """The address, of consecutive parts of words if that is what is accessed."""
        unit = INSTRUCTIONS[access.name].unit
        assert isinstance(unit, LoadStore)
        if unit.size == 4:
            return address
        name = "add" if unit.size == 1 else "lea1"
        base = unit.size * self.rng.randrange(4 * self.config.lanes)
        tid, imm = Operand(Source.TID), Operand(Source.IMM)
        return replace(address, name=name, a=tid, b=imm, imm=base)

    def address(self) -> SlotCode:
        """A slot A0 whose result is mostly an address that exists.

        Strides of 1, 2 and 1/2 words over the lanes, one address for all, and addresses that
        hang on a register: with and without bank conflicts, over global and shared memory.
        """
        rng, config = self.rng, self.config
        end = 4 * config.memory_words
        if rng.random() < self.fault:
            near = SlotCode("add", Operand(Source.IMM), Operand(), rng.choice((end, end - 2)))
            return near if rng.random() < 0.3 else self.slot(Slot.A0, {})
        register = Operand(Source.REG, rng.randrange(config.registers))
        tid, imm = Operand(Source.TID), Operand(Source.IMM)
        shift = rng.choice((2, 2, 3))
        kind = rng.randrange(6)
        span = config.threads << shift
        if kind < 3 and span <= end:
            last = (end - span) // 4
            base = 4 * rng.randint(0, min(rng.choice((last, 16)), last))
            if rng.random() < 0.5:
                base -= base % (4 * config.lanes)
            code = SlotCode(f"lea{shift}", tid, imm, base)
        elif kind == 3:
            code = SlotCode("and", tid, imm, -4 & WORD_MASK)
        elif kind == 4:
            window = 1 << rng.randrange(2, end.bit_length())
            code = SlotCode("and", register, imm, window - 4)
        else:
            word = rng.choice((rng.randrange(config.memory_words), config.memory_words - 1))
            code = SlotCode("add", imm, Operand(), 4 * word)
        if rng.random() < self.live / 2:
            kind_, index = self.destination(predicate=False)
            code = SlotCode(code.name, code.a, code.b, code.imm, kind_, index, code.pred)
        return code
