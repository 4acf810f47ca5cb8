"""The reference interpreter: control flow and memory within passes."""

import pytest
from listings import executions, last, register, run, words
from qgpu_isa.errors import ExecutionError, ProgramError
from qgpu_isa.instruction import Slot
from qgpu_isa.interpreter import Launch, Machine, run_launch
from qgpu_isa.machine_config import DEFAULT, NANO, SMALL
from qgpu_isa.program import Block, Branch, Operand, ProgramImage, SlotCode, Source, Status
from qgpu_isa.program_text import text_to_image


def test_lanes_part_and_meet_again() -> None:
    machine, steps = run(
        SMALL,
        """
        block 0:
          A1 and tid, #1
          A2 seteq A1, #1
          branch flag A2 ? 1 : 2
        block 1:
          A1 add #10, tid -> r1
          branch 3
        block 2:
          A1 add #20, tid -> r1
          branch 3
        block 3:
          A1 add r1, #100 -> r2
          branch exit
        """,
        threads=4,
    )
    assert executions(steps) == [(1, 0, 0b1010), (2, 0, 0b0101), (3, 0, 0b1111)]
    assert register(machine, 2)[:4] == [120, 111, 122, 113]
    assert last(steps) == "END()"


def test_lanes_of_one_loop_leave_one_after_the_other() -> None:
    machine, steps = run(
        NANO,
        """
        block 0:
          A1 add tid, #1 -> r1
          branch 1
        block 1:
          A0 sub r1, #1 -> r1
          A1 add r2, r1 -> r2
          A2 setne A1, A1
          X  mullo r3, #2
          branch 2
        block 2:
          A2 setne r1, zero
          branch flag A2 ? 1 : 3
        block 3:
          branch exit
        """,
        threads=2,
    )
    assert [e for e in executions(steps) if e[0] != 2] == [(1, 0, 3), (1, 0, 2), (3, 0, 3)]
    assert register(machine, 2)[:2] == [1, 3]


def test_registers_and_predicates_are_read_before_the_block() -> None:
    machine, _ = run(
        NANO,
        """
        block 0:
          A0 add #7, zero -> r1
          A1 setne #1, zero -> p0
          A2 add r1, #1 -> r2
          branch p0 ? trap : 1
        block 1:
          A1 add r1, #1 -> r3 @p0
          A2 sel #5, zero, !p0 -> r4
          branch !p0 ? trap : exit
        """,
    )
    assert register(machine, 2) == [1] * 8
    assert register(machine, 3) == [8] * 8
    assert register(machine, 4) == [0] * 8


def test_a_guard_keeps_the_destination_but_not_the_forwarded_result() -> None:
    machine, _ = run(
        NANO,
        """
        block 0:
          A1 seteq tid, #1 -> p1
          X  mullo tid, #1 -> r1
          branch 1
        block 1:
          A0 lea2 tid, zero
          MEM ld -> r3 @p1
          A1 add #50, tid -> r1 @p1
          A2 add A1, MEM -> r2
          branch exit
        """,
        {0: 1000, 1: 2000},
        threads=2,
    )
    assert register(machine, 1)[:2] == [0, 51]
    assert register(machine, 3)[:2] == [0, 2000]
    assert register(machine, 2)[:2] == [50, 2051]


def test_bank_conflicts_repeat_the_block_for_the_losers() -> None:
    machine, steps = run(
        SMALL,
        """
        block 0:
          A0 lea3 tid, zero
          MEM ld -> r1
          A1 add r2, #1 -> r2
          branch 1
        block 1:
          A0 lea3 tid, #512
          MEM st r1
          branch exit
        """,
        {2 * i: 70 + i for i in range(4)},
        threads=4,
    )
    # Words 0 2 4 6 lie in banks 0 2 0 2: lanes 0 and 1 win, then 2 and 3.
    assert executions(steps) == [(0, 0, 0b1100), (1, 0, 0b1111), (1, 0, 0b1100)]
    assert register(machine, 1)[:4] == [70, 71, 72, 73]
    assert register(machine, 2)[:4] == [1, 1, 1, 1]
    assert words(machine, 128, 8) == [70, 0, 71, 0, 72, 0, 73, 0]


def test_lanes_on_one_word_load_together_and_the_lowest_stores() -> None:
    machine, steps = run(
        SMALL,
        """
        block 0:
          A0 add #16, zero
          MEM ld -> r1
          A1 setltu tid, #1 -> p0
          branch 1
        block 1:
          A0 add #32, zero
          MEM st tid @!p0
          branch exit
        """,
        {4: 9},
        threads=4,
    )
    assert executions(steps) == [(1, 0, 0b1111)]
    assert register(machine, 1)[:4] == [9] * 4
    assert words(machine, 8, 1) == [1]


ATOMIC_ADD = """
block 0:
  A1 add tid, #1 -> r1
  branch 2
block 1:
  A0 and tid, #4
  MEM st r2
  branch 3
block 2:
  A0 and tid, #4
  MEM ldx -> r3
  A1 add MEM, r1 -> r2
  branch 1
block 3:
  branch exit
"""


@pytest.mark.parametrize("config", [NANO, SMALL, DEFAULT], ids=lambda c: c.name)
@pytest.mark.parametrize("threads", [1, 3, 8])
def test_exclusive_loads_make_updates_atomic(config, threads: int) -> None:
    machine, _ = run(config, ATOMIC_ADD, {0: 1000, 1: 2000}, threads)
    sums = [1000, 2000]
    before = []
    for thread in range(threads):
        before.append(sums[thread >> 2 & 1])
        sums[thread >> 2 & 1] += thread + 1
    assert words(machine, 0, 2) == sums
    assert register(machine, 3)[:threads] == before


def test_a_ballot_counts_the_lanes_that_execute() -> None:
    machine, _ = run(
        SMALL,
        """
        block 0:
          A1 setne tid, #1 -> p0
          branch 1
        block 1:
          A1 ballot p0 -> r1
          branch 2
        block 2:
          A0 lea3 tid, zero
          MEM ld
          A1 ballot pt -> r2
          branch exit
        """,
        threads=4,
    )
    assert register(machine, 1)[:4] == [0b1101] * 4
    # Words 0 2 4 6 lie in banks 0 2 0 2: the last two lanes come again alone.
    assert register(machine, 2)[:4] == [0b0011, 0b0011, 0b1100, 0b1100]


def test_bytes_and_halves_come_out_of_their_word() -> None:
    machine, _ = run(
        SMALL,
        """
        block 0:
          A0 add tid, #1
          MEM ldb -> r1
          A1 extb MEM, A0 -> r2
          branch 1
        block 1:
          A0 lea1 tid, #2
          MEM ldh
          A1 exths MEM, A0 -> r3
          branch exit
        """,
        {0: 0x84838281, 1: 0x88878685, 2: 0x00000009},
        threads=4,
    )
    assert register(machine, 1)[:4] == [0x84838281] * 3 + [0x88878685]
    assert register(machine, 2)[:4] == [0x82, 0x83, 0x84, 0x85]
    assert register(machine, 3)[:4] == [0xFFFF8483, 0xFFFF8685, 0xFFFF8887, 9]


PARTS = """
block 0:
  A0 lea2 tid, zero
  MEM ld -> r1
  branch 1
block 1:
  A0 add r1, #256
  MEM {} tid -> r3
  branch exit
"""


@pytest.mark.parametrize(
    ("name", "addresses", "left", "stored"),
    [
        ("stb", [0, 1, 2, 3, 4, 5, 6, 7], "00000000", {0: 0x03020100, 1: 0x07060504}),
        ("stb", [4, 5, 6, 7, 0, 1, 2, 3], "00000000", {1: 0x03020100, 0: 0x07060504}),
        ("stb", [1, 2, 3, 4, 5, 6, 7, 8], "11111111", {}),
        ("stb", [0, 2, 1, 3, 4, 5, 6, 8], "11111111", {}),
        ("stb", [0, 1, 2, 2, 0, 1, 2, 3], "11111111", {}),
        ("stb", [0, 1, 2, 3, 0, 1, 2, 3], "00001111", {0: 0x03020100}),
        ("sth", [0, 2, 4, 6, 2, 4, 12, 14], "00001100", {0: 0x10000, 1: 0x30002, 3: 0x70006}),
        # The last two lanes lose the bank to the first two and come again alone.
        ("sth", [0, 2, 6, 4, 8, 10, 32, 34], "00110000", {0: 0x10000, 2: 0x50004, 8: 0x70006}),
    ],
)
def test_neighbouring_lanes_store_whole_words(
    name: str, addresses: list[int], left: str, stored: dict[int, int]
) -> None:
    machine, _ = run(DEFAULT, PARTS.format(name), dict(enumerate(addresses)), threads=8)
    assert "".join(map(str, register(machine, 3)[:8])) == left
    assert words(machine, 64, 16) == [stored.get(i, 0) for i in range(16)]


@pytest.mark.parametrize(
    ("slots", "cause"),
    [
        ("A0 add #512, zero\nMEM ld", 0),
        ("A0 add #510, zero\nMEM ld", 1),
        ("A0 add #514, zero\nMEM st r1", 0),
        ("A0 sub zero, #4\nMEM ldx", 0),
        ("A0 add #512, zero\nMEM ldb", 0),
        ("A0 add #509, zero\nMEM ldh", 1),
        ("A0 add #509, zero\nMEM sth #1", 1),
    ],
)
def test_bad_addresses_fault(slots: str, cause: int) -> None:
    machine, steps = run(NANO, f"block 0:\n{slots}\nA1 add #1, zero -> r1\nbranch exit")
    assert [str(s.token) for s in steps] == [f"FAULT({cause})"]
    assert register(machine, 1) == [0] * 8


def test_inactive_lanes_do_not_fault_and_the_last_word_is_there() -> None:
    machine, steps = run(
        NANO,
        """
        block 0:
          A1 setltu tid, #1 -> p0
          branch 1
        block 1:
          A0 lea2 tid, #508
          MEM st #5 @p0
          branch p1 ? trap : exit
        """,
        threads=2,
    )
    assert last(steps) == "END()"
    assert machine.state.memory[127] == 5


def test_a_trap_faults_if_an_active_lane_takes_it() -> None:
    text = "block 0:\nA1 seteq tid, #5\nbranch flag A1 ? trap : exit"
    assert last(run(NANO, text, threads=5)[1]) == "END()"
    _, steps = run(NANO, text, threads=6, ctas=2)
    assert last(steps) == "FAULT(2)"
    assert (steps[-1].cta, steps[-1].pass_) == (0, 2)


def test_ctas_run_in_order_on_one_memory() -> None:
    machine, steps = run(
        NANO,
        """
        block 0:
          A0 add #40, zero
          MEM ld
          A1 add MEM, ctaid -> r1
          A2 add r2, #1 -> r2
          branch wait cta 1
        block 1:
          A0 add #40, zero
          MEM st r1
          branch exit
        """,
        {10: 5},
        threads=3,
        ctas=4,
    )
    assert words(machine, 10, 1) == [5 + 0 + 1 + 2 + 3]
    assert register(machine, 2)[:4] == [4, 4, 4, 0]
    assert [s.cta for s in steps if s.token.cls.name == "END"] == [0, 1, 2, 3]


def test_launches_that_do_not_fit_are_refused() -> None:
    image = text_to_image("block 0:\nbranch 0", config=NANO)
    with pytest.raises(ExecutionError, match="a CTA of 9 threads does not fit machine 'nano'"):
        Machine(Launch(image, threads=9))
    with pytest.raises(ExecutionError, match="0 CTAs; a launch has 1 to 65536"):
        Machine(Launch(image, ctas=0))
    for memory in ({128: 1}, {-1: 1}, {0: 1 << 32}):
        with pytest.raises(ExecutionError, match="has the words 0 to 127"):
            Machine(Launch(image, memory))
    with pytest.raises(ExecutionError, match="more than 50 tokens"):
        run_launch(Launch(image), max_tokens=50)


BROKEN = [
    ({}, "0 blocks; machine 'nano' holds 32"),
    ({Slot.A0: SlotCode("nothing")}, "block 0, slot A0: unknown instruction 'nothing'"),
    ({Slot.X: SlotCode("add")}, "'add' can only stand in A0, A1, A2"),
    ({Slot.A0: SlotCode("add", Operand(Source.FWD0))}, "no such forwarded operand"),
    ({Slot.A0: SlotCode("add", Operand(Source.REG, 8))}, "register r8 does not exist"),
    ({Slot.A0: SlotCode("add", imm=-1)}, "immediate -1 is not a 32-bit word"),
    ({Slot.MEM: SlotCode("ld")}, "MEM needs an address from slot A0"),
]


@pytest.mark.parametrize(("slots", "message"), BROKEN)
def test_broken_images_are_refused(slots: dict, message: str) -> None:
    blocks = (Block(slots, Branch(taken_status=Status.EXIT)),) if slots else ()
    with pytest.raises(ProgramError, match="program: ") as caught:
        ProgramImage(NANO, blocks).verify()
    assert message in str(caught.value)
