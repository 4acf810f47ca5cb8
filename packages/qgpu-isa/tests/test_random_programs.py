"""The generators: legal, bounded, the same everywhere, and they reach everything."""

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.interpreter import Launch, run_launch
from qgpu_isa.machine_config import DEFAULT, NANO, SMALL, MachineConfig
from qgpu_isa.program import FORWARDS, CondSource, DstKind, Source, Status
from qgpu_isa.program_text import image_to_text
from qgpu_isa.random_programs import random_image, random_launch
from qgpu_isa.testing import blocks, images, launches, slot_codes, straight_programs
from qgpu_isa.vocabulary import WORD_NIBBLES, Fault, TokenClass, vocabulary

TINY = MachineConfig("tiny", 2, 1, 2, 1, 2, 4, 2)


@pytest.mark.parametrize("config", [NANO, SMALL, DEFAULT, TINY], ids=lambda c: c.name)
@pytest.mark.parametrize("limit", [2, 60, 200])
def test_random_launches_are_legal_and_bounded(config: MachineConfig, limit: int) -> None:
    for seed in range(25):
        launch = random_launch(config, seed, max_tokens=limit)
        _, steps = run_launch(launch)
        assert len(steps) <= limit
        assert steps[-1].token.cls in (TokenClass.END, TokenClass.FAULT)


def test_a_seed_gives_one_launch() -> None:
    assert random_launch(NANO, 5) == random_launch(NANO, 5)
    assert random_launch(NANO, 5) != random_launch(NANO, 6)
    # A change of this listing changes every comparison that quotes a seed.
    assert image_to_text(random_launch(NANO, 7).image) == SEED_7


@pytest.fixture(scope="module")
def seen() -> Counter:
    """What happens, and how often, in the first launches on the nano machine."""
    count: Counter = Counter()
    for seed in range(800):
        launch = random_launch(NANO, seed)
        _, steps = run_launch(launch)
        executed = {0} | {s.block for s in steps}
        count["ctas", launch.ctas] += 1
        count["threads", launch.threads] += 1
        for index in executed:
            block = launch.image.blocks[index]
            b = block.branch
            count["cond", b.cond, b.negate] += 1
            count["status", b.taken_status] += 1
            count["status", b.next_status] += b.cond is not CondSource.ALWAYS
            for slot, code in block.slots.items():
                count[slot, code.name] += 1
                count["dst", slot, code.dst] += 1
                count["guard", slot, code.pred.index is not None, code.pred.negate] += 1
                count[slot, "a", code.a.source] += 1
                count[slot, "b", code.b.source] += 1
        for before, step in zip([None, *steps], steps, strict=False):
            token = step.token
            count[token.cls] += 1
            if token.cls in (TokenClass.STOP, TokenClass.FAULT):
                count[token.cls, token.values[0]] += 1
            if token.cls is TokenClass.GROUP:
                _, nibbles, signed, part, *_ = token.values
                count["group", nibbles, bool(signed), part] += 1
            if step.slot is not None:
                count[token.cls, step.slot] += 1
            if token.cls is TokenClass.EXEC:
                count["again"] += before is not None and before.block == step.block
                count["pass", step.pass_] += 1
                count["phase", token.values[2]] += 1
    return count


def test_launches_reach_every_instruction_in_every_slot(seen: Counter) -> None:
    for instruction in INSTRUCTIONS:
        for slot in instruction.slots:
            assert seen[slot, instruction.name] >= 5, (slot, instruction.name)


def test_launches_reach_every_operand_destination_and_guard(seen: Counter) -> None:
    plain = [s for s in Source if s < Source.FWD0]
    for slot in Slot:
        for source in [*plain, *FORWARDS[slot]]:
            assert slot is Slot.MEM or seen[slot, "a", source], (slot, "a", source)
            assert seen[slot, "b", source], (slot, "b", source)
        kinds = {k for k in DstKind if k is not DstKind.PRED or slot in (Slot.A1, Slot.A2)}
        assert {k for k in DstKind if seen["dst", slot, k]} == kinds
        for negate in (False, True):
            assert seen["guard", slot, True, negate] > 5


def test_launches_reach_every_branch_barrier_fault_and_format(seen: Counter) -> None:
    for cond in CondSource:
        for negate in (False, True):
            assert cond is CondSource.ALWAYS or seen["cond", cond, negate] > 5
    for status in Status:
        assert seen["status", status] > 20
        assert status is Status.RUN or seen[TokenClass.STOP, int(status)] > 100
    for fault in Fault:
        assert seen[TokenClass.FAULT, int(fault)] > 1, fault
    fed = (TokenClass.PROG, TokenClass.MEM, TokenClass.CTA, TokenClass.INIT)
    for cls in set(vocabulary(NANO).classes).difference(fed):
        assert seen[cls] > 10, cls
    for nibbles in range(WORD_NIBBLES + 1):
        for part in range(1 + (nibbles > 4)):
            # Unsigned words of one bit are a BITS record where there is one group.
            assert bool(seen["group", nibbles, False, part]) is (nibbles > 0), (nibbles, part)
            signed = nibbles < WORD_NIBBLES
            assert bool(seen["group", nibbles, True, part]) is signed, (nibbles, part)
    for slot in Slot:
        for cls in (TokenClass.GROUP, TokenClass.WORD, TokenClass.SAME, TokenClass.BITS):
            assert seen[cls, slot], (cls, slot)
    assert seen["again"] > 50
    assert all(seen["pass", g] > 50 for g in range(NANO.passes))
    assert seen["phase", 1] > 50
    assert all(seen["ctas", n] > 5 for n in (1, 2, 3))
    assert all(seen["threads", n] > 5 for n in range(1, NANO.threads + 1))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1 << 32), st.integers(1, 20))
def test_structured_programs_end(seed: int, count: int) -> None:
    image = random_image(SMALL, random.Random(seed), count)
    assert len(image.blocks) <= count
    run_launch(Launch(image, {}, 12, 1), max_tokens=20_000)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_strategies_make_legal_things(data: st.DataObject) -> None:
    config = data.draw(st.sampled_from([NANO, DEFAULT, TINY]))
    data.draw(images(config, max_blocks=2)).verify()
    data.draw(straight_programs(config)).verify()
    assert data.draw(slot_codes(config, Slot.X)).name in INSTRUCTIONS
    data.draw(blocks(config))
    launch = data.draw(launches(config, max_blocks=5))
    run_launch(launch, max_tokens=50_000)


SEED_7 = """\
.machine nano
.program random

block 0:
  X    mulhis  #4, r4               -> r1  @p2
  branch 2

block 1:
  A0   add     #0, zero
  MEM  st      r2
  branch 3

block 2:
  A0   add     #0, zero
  MEM  ldx
  A1   add     zero, MEM            -> r2  @!p0
  branch 1

block 3:
  A0   and     tid, r2
  X    shlb    zero, r6
  branch 4

block 4:
  A0   add     #72, zero
  MEM  ldx
  branch !p2 ? exit : 5

block 5:
  A0   lea2    #0x1000, tid
  A2   seteq   #36, #36
  branch 6

block 6:
  branch !p2 ? 7 : 8

block 7:
  A1   seteq   ctaid, #7
  X    mulhis  r1, r7
  branch 9

block 8:
  A0   lea3    tid, #320
  MEM  ld
  A2   setne   MEM, #33             -> p2
  branch 9

block 9:
  branch 10

block 10:
  A0   lea2    tid, #392
  MEM  ldxh
  X    mullo   tid, MEM                    @!p2
  A2   setltu  X, #0x9c5a7a
  branch flag A2 ? 12 : 11

block 11:
  A1   ctz     #0xcca5
  X    mulhiu  #5, tid              -> r3  @p2
  branch 12

block 12:
  A1   extbs   ctaid, r1
  X    shl     r1, r5
  A2   setges  tid, r7              -> r3  @!p2
  branch exit
"""
