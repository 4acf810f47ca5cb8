"""What a launch must send at least: small programs counted by hand, random ones against tokens."""

from __future__ import annotations

import math

import pytest
from qgpu_isa.errors import ExecutionError
from qgpu_isa.interpreter import Launch, run_launch
from qgpu_isa.machine_config import DEFAULT, NANO, SMALL, MachineConfig
from qgpu_isa.program_text import text_to_image
from qgpu_isa.random_programs import random_launch
from qgpu_isa.token_floor import (
    TokenFloor,
    predicate_bits,
    row_bits,
    run_for_floor,
    significant_bits,
)
from qgpu_isa.vocabulary import vocabulary


def floor(text: str, threads: int, ctas: int = 1, config: MachineConfig = NANO) -> TokenFloor:
    return run_for_floor(Launch(text_to_image(text, config=config), {}, threads, ctas)).floor


def test_a_row_that_is_read_later_travels_and_a_stored_one_does_not() -> None:
    found = floor(
        """
        block 0:
          A0 add tid, #5 -> r1
          A1 add tid, #9 -> r2
          branch 1
        block 1:
          A0  lea2 tid, #64
          MEM st   r1
          branch exit
        """,
        threads=2,
        ctas=3,
    )
    # r1 = 5, 6: from 5 (3 bits) by 1 (1 bit), and after CTA 0 it is there already. r2 is not read.
    assert (found.executions, found.register_bits, found.predicate_bits) == (6, 4, 0)
    assert (found.choice_bits, found.stored_bits) == (0.0, 3 * (3 + 3))
    assert found.bits_per_token == math.log2(vocabulary(NANO).size)
    assert (found.floor_tokens, found.block_floor_tokens) == (1.0, 6)


def test_predicates_and_choices() -> None:
    found = floor(
        """
        block 0:
          A0 add r1, #1 -> r1
          A1 setltu tid, #1 -> p0
          branch 1
        block 1:
          A1 setltu r1, #4
          branch flag A1 ? 0 : 2
        block 2:
          branch p0 ? 3 : 3
        block 3:
          branch exit
        """,
        threads=2,
    )
    # r1 = 1, 2, 3, 4 in both lanes.
    assert found.register_bits == 1 + 2 + 2 + 3
    # p0 = 1, 0 is set once and changes in one lane.
    assert found.predicate_bits == 1
    assert found.choice_bits == pytest.approx(3 * math.log2(4 / 3) + 2)
    assert found.executions == found.block_floor_tokens == 10


def test_what_is_overwritten_before_it_is_read_does_not_travel() -> None:
    found = floor(
        """
        block 0:
          A0 add tid, #100 -> r1
          branch 1
        block 1:
          A0 add zero, #7 -> r1
          branch 2
        block 2:
          A0 add r1, #1 -> r2
          branch exit
        """,
        threads=2,
    )
    assert found.register_bits == 3


def test_descriptions() -> None:
    bits = [significant_bits(word) for word in (0, 1, 2, 255, 2**31, 2**32 - 1, 2**32 - 3)]
    assert bits == [1, 1, 2, 8, 32, 1, 3]
    assert row_bits({3: 1000}) == 10
    assert row_bits({0: 9, 1: 9, 5: 9}) == 4
    assert row_bits({0: 64, 2: 72, 3: 76}) == 7 + 3
    assert row_bits({0: 64, 2: 72, 3: 77}) == 21
    assert row_bits({0: 5, 1: 2**32 - 1}) == 3 + 1
    assert [predicate_bits(bits) for bits in ({0: 1, 1: 0}, {0: 0, 3: 0})] == [2, 1]


@pytest.mark.parametrize("config", [NANO, SMALL, DEFAULT], ids=lambda config: config.name)
def test_random_programs_run_as_ever_and_take_at_least_as_many_tokens(
    config: MachineConfig,
) -> None:
    for seed in range(25):
        launch = random_launch(config, seed)
        machine, steps = run_launch(launch)
        found = run_for_floor(launch)
        assert found.steps == steps
        assert found.machine.state.memory == machine.state.memory
        assert found.machine.state.registers == machine.state.registers
        floor = found.floor
        assert floor.executions <= floor.block_floor_tokens <= len(steps)
        assert floor.floor_tokens <= len(steps)


def test_an_endless_launch_is_refused() -> None:
    text = """
        block 0:
          A0 add tid, #1
          branch 0
        """
    launch = Launch(text_to_image(text, config=NANO), {}, 2)
    with pytest.raises(ExecutionError, match="more than 50 tokens"):
        run_for_floor(launch, max_tokens=50)
