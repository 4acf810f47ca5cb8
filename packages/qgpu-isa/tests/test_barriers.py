"""The reference interpreter: warp and CTA barriers between passes."""

import pytest
from listings import executions, last, register, run, words
from qgpu_isa.machine_config import DEFAULT, NANO, SMALL, MachineConfig

ROTATE = """
; every thread passes its number on to the next of its CTA through shared memory, twice
block 0:
  A1 add tid, #100 -> r1
  A2 add #2, zero -> r3
  branch 1
block 1:
  A0 lea2 tid, #{base}
  MEM st r1
  branch wait {barrier} 2
block 2:
  A0 add tid, #1
  A1 and A0, #{last} -> r2
  branch 3
block 3:
  A0 lea2 r2, #{base}
  MEM ld -> r1
  branch wait {barrier} 4
block 4:
  A1 sub r3, #1 -> r3
  A2 setne A1, zero
  branch flag A2 ? 1 : exit
"""


@pytest.mark.parametrize("config", [NANO, SMALL, DEFAULT], ids=lambda c: c.name)
def test_a_cta_barrier_holds_all_passes(config: MachineConfig) -> None:
    n = config.threads
    text = ROTATE.format(base=config.shared_base, last=n - 1, barrier="cta")
    machine, steps = run(config, text)
    assert register(machine, 1) == [100 + (t + 2) % n for t in range(n)]
    assert last(steps) == "END()"


@pytest.mark.parametrize("config", [NANO, SMALL, DEFAULT], ids=lambda c: c.name)
def test_a_warp_barrier_holds_the_passes_of_a_warp(config: MachineConfig) -> None:
    n = min(32, config.threads)
    text = ROTATE.format(base=config.shared_base, last=n - 1, barrier="warp")
    machine, _ = run(config, text, threads=n)
    assert register(machine, 1)[:n] == [100 + (t + 2) % n for t in range(n)]


def test_exited_threads_do_not_hold_a_barrier() -> None:
    machine, steps = run(
        NANO,
        """
        block 0:
          A1 setltu tid, #3
          branch flag A1 ? 1 : exit
        block 1:
          A0 lea2 tid, #448
          MEM st #6
          branch wait cta 2
        block 2:
          A0 add #456, zero
          MEM ld -> r1
          branch exit
        """,
    )
    assert last(steps) == "END()"
    assert register(machine, 1) == [6, 6, 6, 0, 0, 0, 0, 0]


def test_a_warp_barrier_opens_while_another_warp_waits_for_the_cta() -> None:
    # On the small machine a warp is 8 passes. Warp 0 goes to the CTA barrier at once; the passes
    # of warp 1 first meet at two warp barriers of their own.
    machine, steps = run(
        SMALL,
        """
        block 0:
          A0 add tid, #1
          A1 setltu tid, #32
          A2 add A1, zero -> r7
          branch flag A1 ? wait cta 4 : 1
        block 1:
          A0 lea2 tid, #4096
          MEM st tid
          A1 add tid, #4 -> r1
          branch wait warp 2
        block 2:
          A1 and r1, #31
          A2 add A1, #32 -> r1
          branch 3
        block 3:
          A0 lea2 r1, #4096
          MEM ld -> r2
          branch wait warp 4
        block 4:
          A1 add r3, #1 -> r3
          branch wait cta 5
        block 5:
          A1 add r3, #1 -> r3
          branch exit
        """,
        threads=64,
    )
    assert last(steps) == "END()"
    assert register(machine, 2)[32:64] == [32 + (t + 4) % 32 for t in range(32)]
    assert register(machine, 3)[:64] == [2] * 64
    order = executions(steps)
    stores = [i for i, e in enumerate(order) if e[0] == 1]
    loads = [i for i, e in enumerate(order) if e[0] == 3]
    assert max(stores) < min(loads)


def test_a_pass_waits_for_its_warp_with_some_lanes_and_for_its_cta_with_others() -> None:
    machine, steps = run(
        NANO,
        """
        block 0:
          A1 and tid, #1
          A2 seteq A1, zero
          branch flag A2 ? wait warp 1 : wait cta 2
        block 1:
          A1 add r1, #1 -> r1
          branch wait cta 2
        block 2:
          A1 add r1, #10 -> r1
          branch exit
        """,
    )
    assert last(steps) == "END()"
    assert register(machine, 1) == [11, 10] * 4
    order = executions(steps)
    assert [e for e in order if e[0] == 1] == [(1, g, 1) for g in range(4)]
    assert max(i for i, e in enumerate(order) if e[0] == 1) < min(
        i for i, e in enumerate(order) if e[0] == 2
    )


def test_the_phase_alternates_with_every_cta_barrier() -> None:
    blocks = "".join(f"block {i}:\nbranch wait cta {i + 1}\n" for i in range(5))
    _, steps = run(NANO, blocks + "block 5:\nbranch exit")
    phases = [s.token.values[2] for s in steps if s.token.cls.name == "EXEC"]
    assert phases == [0] * 3 + [1] * 4 + [0] * 4 + [1] * 4 + [0] * 4 + [1] * 4


def test_a_kernel_of_one_warp_needs_no_full_warp() -> None:
    machine, _ = run(
        DEFAULT,
        """
        block 0:
          A0 lea2 tid, #0
          MEM st #1
          branch wait warp 1
        block 1:
          A0 lea2 zero, #36
          MEM ld -> r1
          branch exit
        """,
        threads=10,
    )
    assert register(machine, 1)[:10] == [1] * 10
    assert words(machine, 0, 12) == [1] * 10 + [0, 0]


@pytest.mark.parametrize("barrier", ["cta", "warp"])
def test_lanes_that_lose_a_bank_behind_a_barrier_do_not_miss_the_next(barrier: str) -> None:
    machine, _ = run(
        NANO,
        f"""
        block 0:
          A0 lea2 tid, zero -> r1
          A1 setgeu tid, #6 -> p0
          A2 setltu tid, #1 -> p1
          branch 1
        block 1:
          X  shl tid, #3 -> r1 @p0
          branch wait {barrier} 2
        block 2:                      ; threads 6 and 7 load words 12 and 14, both in bank 0
          A0 add r1, zero
          MEM ld -> r2
          branch wait {barrier} 3
        block 3:                      ; thread 0 overwrites what thread 7 loaded
          A0 add #56, zero
          MEM st #99 @p1
          branch exit
        """,
        {w: 10 + w for w in range(16)},
    )
    assert register(machine, 2) == [10, 11, 12, 13, 14, 15, 22, 24]
