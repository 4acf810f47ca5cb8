"""Loads and stores of bytes and halves at all kinds of addresses, against the interpreter."""

from __future__ import annotations

import random

import pytest
from qgpu_circuit.machine_to_netlist import machine_to_netlist
from qgpu_circuit.model_shape import shape_for
from qgpu_circuit.simulate import Simulator
from qgpu_circuit.teacher_force import first_difference
from qgpu_isa import DEFAULT, NANO, SMALL, Launch, MachineConfig
from qgpu_isa.program_text import text_to_image

ROUNDS = 3
WINDOW = 16
"""Words that are stored to, behind the lanes' addresses."""

STORE = """
block {first}:
  A0 lea2 tid, #{addresses}
  MEM ld -> r0
  A1 setltu MEM, #{limit} -> p0
  branch {second}
block {second}:
  A0 add r0, #{base}
  MEM st{part} {data} @p0
  A1 ext{part}s r0, A0 -> r1
  A2 setne MEM, zero -> p1
  branch flag A2 ? {third} : {third}
block {third}:
  A0 add r0, #{base}
  MEM ld{part} -> r2
  A1 ext{part} MEM, A0 -> r3
  A2 sel A1, MEM, p1 -> r1
  branch {after}
"""


def addresses(config: MachineConfig, size: int, rng: random.Random) -> list[int]:
    """Mostly neighbours in order, now and then one elsewhere, two swapped or a shift."""
    count = 4 // size
    found: list[int] = []
    while len(found) < config.lanes:
        start = 4 * rng.randrange(WINDOW - 1)
        group = [start + size * k for k in range(count)]
        kind = rng.randrange(8)
        if kind == 0:
            group[rng.randrange(count)] = size * rng.randrange(4 * WINDOW // size)
        elif kind == 1:
            rng.shuffle(group)
        elif kind == 2:
            group = [address + size for address in group]
        elif kind == 3 and found:
            group = found[-count:]
        found += group
    return found[: config.lanes]


def launch(config: MachineConfig, seed: int) -> Launch:
    """A pass that stores parts of words and loads them again, a few times."""
    rng = random.Random(seed)
    memory: dict[int, int] = {}
    text = f".machine {config.name}\n.program parts\n"
    base = 4 * ROUNDS * config.lanes
    for number in range(ROUNDS):
        part, size = rng.choice((("b", 1), ("h", 2)))
        for lane, address in enumerate(addresses(config, size, rng)):
            memory[number * config.lanes + lane] = address
        text += STORE.format(
            part=part,
            first=3 * number,
            second=3 * number + 1,
            third=3 * number + 2,
            after="exit" if number == ROUNDS - 1 else 3 * number + 3,
            addresses=4 * number * config.lanes,
            base=base,
            data=rng.choice(("tid", "r0", f"#{rng.getrandbits(32)}")),
            limit=rng.choice((4 * WINDOW, 4 * WINDOW, 40)),
        )
    return Launch(text_to_image(text), memory, threads=config.lanes)


@pytest.mark.parametrize(
    "config",
    [NANO, *(pytest.param(c, marks=pytest.mark.slow) for c in (SMALL, DEFAULT))],
    ids=lambda c: c.name,
)
def test_parts_of_words(config: MachineConfig) -> None:
    simulator = Simulator(machine_to_netlist(config, shape_for(config)))
    for seed in range(8):
        simulator.reset()
        assert first_difference(launch(config, seed), simulator.step) is None, f"seed {seed}"
