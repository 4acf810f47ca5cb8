"""Random programs that end, and launches of them: the inputs on which engines are compared.

Programs are sequences of segments: straight code, branches that meet again, bounded loops, atomic
updates, barriers, early exits, traps, and blocks that jump forward anywhere. Every lane goes
forward but for loops with a counter that nothing else writes and the retry of an atomic update,
so every program ends.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.interpreter import Launch, Machine
from qgpu_isa.machine_config import MachineConfig
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
from qgpu_isa.random_slots import SlotMaker, random_word

MAX_TRIPS = 4
"""Most often that a loop's body runs."""

_ATTEMPTS = 24


def random_launch(config: MachineConfig, seed: int, *, max_tokens: int = 60) -> Launch:
    """A launch that is the same for the same arguments on every machine and Python.

    Args:
        config: the machine.
        seed: number of the launch.
        max_tokens: most tokens that the launch decodes, at least 2.
    """
    for attempt in range(_ATTEMPTS):
        rng = random.Random(f"{config.name}/{seed}/{attempt}")
        launch = _launch(config, rng, max(8, int(max_tokens * 0.9**attempt)))
        if _decoded_tokens(launch, max_tokens) <= max_tokens:
            return launch
    exit_block = Block(branch=Branch(taken_status=Status.EXIT))
    return Launch(ProgramImage(config, (exit_block,), f"random_{seed}"))


def random_image(config: MachineConfig, rng: random.Random, blocks: int = 8) -> ProgramImage:
    """A structured program of at most `blocks` blocks (and the machine's ROM), at least 1."""
    maker = SlotMaker(config, rng, live=rng.choice((0.1, 0.25, 0.6)))
    return _ProgramMaker(maker, min(blocks, config.rom_blocks)).image()


def random_memory(config: MachineConfig, rng: random.Random) -> dict[int, int]:
    """Contents of a launch's memory: a scale for the whole, some words, the last one often."""
    chance = rng.choice((0.1, 0.5, 0.9))
    words = min(config.memory_words, 256)
    addresses = {a for a in range(words) if rng.random() < chance} | {config.memory_words - 1}
    bits = rng.choice((1, 4, 8, 15, 32, None))
    return {
        address: random_word(rng) if bits is None else rng.getrandbits(bits)
        for address in sorted(addresses)
    }


def random_straight_image(
    config: MachineConfig, rng: random.Random, blocks: int = 4
) -> ProgramImage:
    """A program of `blocks` blocks that run one after the other."""
    maker = SlotMaker(config, rng)
    count = min(blocks, config.rom_blocks)
    last = Branch(taken_status=Status.EXIT)
    return ProgramImage(
        config,
        tuple(
            Block(maker.slots(), last if i == count - 1 else Branch(taken=i + 1))
            for i in range(count)
        ),
    )


def _launch(config: MachineConfig, rng: random.Random, budget: int) -> Launch:
    ctas = rng.choices((1, 2, 3), (12, 3, 1))[0]
    most = max(1, min(config.passes, budget // (6 * ctas)))
    passes = rng.choice((1, most, rng.randint(1, most), rng.randint(1, most)))
    threads = passes * config.lanes
    if rng.random() < 0.4:
        threads -= rng.randrange(config.lanes)
    per_pass = budget // (ctas * passes)
    # A block costs its EXEC token and some records, two or three tokens at these rates.
    image = random_image(config, rng, blocks=max(1, per_pass // rng.choice((2, 2, 3))))
    return Launch(image, random_memory(config, rng), threads, ctas)


def _decoded_tokens(launch: Launch, limit: int) -> int:
    """Tokens that the launch decodes, counted up to `limit + 1`."""
    machine = Machine(launch)
    count = 0
    for cta in range(launch.ctas):
        machine.start_cta(cta)
        fault = False
        for step in islice(machine.decode(cta), limit + 1 - count):
            count += 1
            fault = step.token.cls.name == "FAULT"
        if fault or count > limit:
            break
    return count


class _ProgramMaker:
    """Appends segments; control enters a segment at its first block and leaves behind its last."""

    def __init__(self, maker: SlotMaker, limit: int) -> None:
        self.maker = maker
        self.rng = maker.rng
        self.limit = limit - 1
        self.blocks: list[Block] = []

    def image(self) -> ProgramImage:
        weighted = {
            self._straight: 6,
            self._skip: 3,
            self._diamond: 3,
            self._loop: 5,
            self._atomic: 2,
            self._barrier: 3,
            self._leave: 1,
            self._wild: 2,
        }
        count = self.rng.randint(min(1, self.limit), self.limit)
        while len(self.blocks) < count:
            before = len(self.blocks)
            self.rng.choices(list(weighted), list(weighted.values()))[0]()
            if len(self.blocks) == before:
                self._straight()
        self._add(self.maker.slots(fill=0.3), Branch(taken_status=Status.EXIT))
        return ProgramImage(self.maker.config, tuple(self.blocks), "random")

    @property
    def _room(self) -> int:
        return self.limit - len(self.blocks)

    @property
    def _here(self) -> int:
        return len(self.blocks)

    def _add(self, slots: dict[Slot, SlotCode], branch: Branch) -> None:
        self.blocks.append(Block(slots, branch))

    def _status(self) -> Status:
        return self.rng.choices((Status.RUN, Status.WARP, Status.CTA), (24, 2, 2))[0]

    def _conditional(self, taken: int, next_: int) -> None:
        """A block that ends in a condition that is seldom the same for all lanes."""
        rng, slots = self.rng, self.maker.slots()
        if rng.random() < 0.5:
            slot = rng.choice((Slot.A1, Slot.A2))
            compares = [i for i in INSTRUCTIONS if i.is_compare]
            slots[slot] = self.maker.instruction(slot, rng.choice(compares), slots)
        conds = [CondSource.PRED]
        for slot, cond in ((Slot.A1, CondSource.FLAG_A1), (Slot.A2, CondSource.FLAG_A2)):
            if slot in slots and INSTRUCTIONS[slots[slot].name].is_compare:
                conds += [cond, cond]
        if Slot.A1 in slots and CondSource.FLAG_A1 not in conds and Slot.A2 in slots:
            slots[Slot.A2] = self._without_flag(slots[Slot.A2])
        cond = rng.choice(conds)
        pred = rng.randrange(self.maker.config.predicates) if cond is CondSource.PRED else 0
        taken_status, next_status = self._status(), self._status()
        self._add(
            slots,
            Branch(cond, pred, rng.random() < 0.5, taken, taken_status, next_, next_status),
        )

    @staticmethod
    def _without_flag(code: SlotCode) -> SlotCode:
        """The slot with `selfwd` replaced, for blocks whose A1 compares nothing."""
        return replace(code, name="xor") if code.name == "selfwd" else code

    def _straight(self) -> None:
        self._add(self.maker.slots(), Branch(taken=self._here + 1, taken_status=self._status()))

    def _skip(self) -> None:
        if self._room >= 2:
            here = self._here
            self._conditional(here + 2, here + 1)
            self._straight()

    def _diamond(self) -> None:
        if self._room >= 3:
            here = self._here
            self._conditional(here + 1, here + 2)
            self._add(self.maker.slots(), Branch(taken=here + 3, taken_status=self._status()))
            self._add(self.maker.slots(), Branch(taken=here + 3, taken_status=self._status()))

    def _loop(self) -> None:
        """Counter from 1 to `MAX_TRIPS`, the same or by thread; a body; decrement and test."""
        maker, rng = self.maker, self.rng
        free = [r for r in range(maker.config.registers) if r not in maker.reserved]
        if self._room < 2 or len(free) < 2:
            return
        counter = rng.choice(free)
        trips = Operand(rng.choice((Source.TID, Source.TID, Source.CTAID, Source.ZERO)))
        masked = SlotCode("and", trips, Operand(Source.IMM), rng.choice((1, 3)))
        start = SlotCode("add", Operand(Source.FWD0), Operand(Source.IMM), 1, DstKind.REG, counter)
        slots = maker.slots()
        maker.reserved.add(counter)
        self._add({**slots, Slot.A1: masked, Slot.A2: start}, Branch(taken=self._here + 1))
        head = self._here
        for _ in range(rng.randint(0, min(2, self._room - 1))):
            self._straight()
        slots = maker.slots()
        slots[Slot.A1] = SlotCode(
            "sub", Operand(Source.REG, counter), Operand(Source.IMM), 1, DstKind.REG, counter
        )
        slots[Slot.A2] = SlotCode("setne", Operand(Source.FWD0), Operand())
        after = self._here + 1
        self._add(slots, Branch(CondSource.FLAG_A2, 0, False, head, self._status(), after))
        maker.reserved.remove(counter)

    def _atomic(self) -> None:
        """Load exclusively and compute in the higher block, store and go on from the lower."""
        maker, rng = self.maker, self.rng
        free = [r for r in range(maker.config.registers) if r not in maker.reserved]
        if self._room < 3 or not free:
            return
        here, new = self._here, rng.choice(free)
        address = SlotCode("add", Operand(Source.IMM), Operand(), 4 * rng.randrange(4))
        if rng.random() < 0.3:
            address = SlotCode("and", Operand(Source.TID), Operand(Source.IMM), 4)
        combine = maker.instruction(Slot.A1, INSTRUCTIONS["add"], {})
        combine = replace(combine, b=Operand(Source.FWD1), dst=DstKind.REG, dst_index=new)
        self._add(maker.slots(), Branch(taken=here + 2))
        store = SlotCode("st", b=Operand(Source.REG, new))
        self._add({Slot.A0: address, Slot.MEM: store}, Branch(taken=here + 3))
        load = SlotCode("ldx")
        self._add({Slot.A0: address, Slot.MEM: load, Slot.A1: combine}, Branch(taken=here + 1))

    def _barrier(self) -> None:
        status = self.rng.choice((Status.WARP, Status.CTA))
        self._add(self.maker.slots(), Branch(taken=self._here + 1, taken_status=status))

    def _leave(self) -> None:
        """Some lanes exit, or, now and then, trap."""
        self._conditional(self._here + 1, self._here + 1)
        block = self.blocks[-1]
        trap = self.rng.random() < 10 * self.maker.fault
        status = Status.RUN if trap else Status.EXIT
        target = 0 if trap or status is Status.EXIT else block.branch.taken
        branch = replace(block.branch, taken=target, taken_status=status, trap=trap)
        self.blocks[-1] = replace(block, branch=branch)

    def _wild(self) -> None:
        count = self.rng.randint(1, 4)
        end = self._here + count
        if self._room < count:
            return
        for _ in range(count):
            later = range(self._here + 1, end + 1)
            self._conditional(self.rng.choice(later), self.rng.choice(later))
