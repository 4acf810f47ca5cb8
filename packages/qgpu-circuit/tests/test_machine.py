"""The netlist, simulated, against the reference interpreter."""

from __future__ import annotations

import random

import pytest
from qgpu_circuit.machine_to_netlist import machine_to_netlist
from qgpu_circuit.model_shape import shape_for
from qgpu_circuit.simulate import Simulator
from qgpu_circuit.teacher_force import first_difference
from qgpu_isa import (
    DEFAULT,
    INSTRUCTIONS,
    NANO,
    SMALL,
    Block,
    Instruction,
    Launch,
    MachineConfig,
    ProgramImage,
    Slot,
    SlotCode,
)
from qgpu_isa.program import Branch, DstKind, Operand, Predicate, Source, Status
from qgpu_isa.random_programs import random_launch

CORNERS = (0, 1, 2, 3, 31, 32, 33, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
IMM, REG = Operand(Source.IMM), Operand(Source.REG, 0)


@pytest.mark.parametrize("seed", range(16))
def test_random_programs_on_nano(nano_simulator: Simulator, seed: int) -> None:
    assert first_difference(random_launch(NANO, seed), nano_simulator.step) is None


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(20))
def test_many_random_programs_on_nano(nano_simulator: Simulator, hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        nano_simulator.reset()
        launch = random_launch(NANO, seed)
        assert first_difference(launch, nano_simulator.step) is None, f"seed {seed}"


@pytest.mark.parametrize("config", [SMALL, DEFAULT], ids=lambda c: c.name)
def test_random_programs_on_larger_machines(config: MachineConfig) -> None:
    simulator = Simulator(machine_to_netlist(config, shape_for(config)))
    for seed in range(2):
        simulator.reset()
        launch = random_launch(config, seed, max_tokens=100)
        assert first_difference(launch, simulator.step) is None, f"seed {seed}"


def operand_pairs(name: str) -> list[tuple[int, int]]:
    """Corner and random operands, the same on every run."""
    source = random.Random(name)
    pairs = [(source.choice(CORNERS), source.choice(CORNERS)) for _ in range(5)]
    pairs += [(source.getrandbits(32), source.getrandbits(32)) for _ in range(2)]
    pairs += [(source.getrandbits(32), source.randrange(40)) for _ in range(2)]
    return pairs


def compute_block(instruction: Instruction, slot: Slot, a: int, b: int, following: int) -> Block:
    """Register 1 = a op b; both come from immediates: a through A0, b from a load's place."""
    flag = Predicate(0) if instruction.name in ("sel", "setp", "ballot") else Predicate()
    slots = {
        slot: SlotCode(
            instruction.name,
            a=Operand(Source.REG, 0),
            b=IMM,
            imm=b,
            dst=DstKind.REG,
            dst_index=1,
            pred=flag,
        )
    }
    if instruction.name == "selfwd":
        slots[Slot.A1] = SlotCode("setlts", a=REG, b=Operand(), imm=0)
    return Block(slots, Branch(taken=following))


def program_for(instruction: Instruction, slot: Slot) -> ProgramImage:
    """Loads each first operand into r0, then computes."""
    blocks: list[Block] = []
    pairs = operand_pairs(instruction.name)
    for index, (a, b) in enumerate(pairs):
        loading = SlotCode("add", a=IMM, imm=a, dst=DstKind.REG, dst_index=0)
        blocks.append(Block({Slot.A2: loading}, Branch(taken=2 * index + 1)))
        blocks.append(compute_block(instruction, slot, a, b, 2 * index + 2))
    blocks.append(Block({}, Branch(taken_status=Status.EXIT)))
    return ProgramImage(NANO, tuple(blocks), instruction.name)


COMPUTING = [
    pytest.param(i, slot, id=f"{i.name}-{slot.name}")
    for i in INSTRUCTIONS
    for slot in i.slots
    if slot is not Slot.MEM
]


@pytest.mark.parametrize(("instruction", "slot"), COMPUTING)
def test_every_instruction_in_every_slot(
    nano_simulator: Simulator, instruction: Instruction, slot: Slot
) -> None:
    launch = Launch(program_for(instruction, slot), threads=2)
    assert first_difference(launch, nano_simulator.step) is None


def test_every_memory_instruction_is_covered_by_random_programs() -> None:
    used = {
        code.name
        for seed in range(16)
        for block in random_launch(NANO, seed).image.blocks
        for code in block.slots.values()
    }
    assert {i.name for i in INSTRUCTIONS if Slot.MEM in i.slots} <= used
