"""What CTAs do on their own, and what makes one depend on another."""

from __future__ import annotations

import pytest
from qgpu_isa.errors import ExecutionError
from qgpu_isa.interpreter import (
    Dependence,
    Launch,
    dependences,
    run_ctas_apart,
    run_launch,
    run_some_apart,
    up_to_fault,
)
from qgpu_isa.text_to_image import text_to_image

HEAD = ".machine nano\n.program ctas\n"

OWN_WORDS = (
    HEAD
    + """\
block 0:
  A0  lea2  ctaid, #64
  MEM ld    -> r1
  branch 1
block 1:
  A0  add   r1, #5 -> r2
  branch 2
block 2:
  A0  lea2  ctaid, #128
  MEM st    r2
  branch exit
"""
)
"""Word 32 + CTA becomes word 16 + CTA, and 5 more."""

NEIGHBOUR = OWN_WORDS.replace("#128", "#68")
"""Word 17 + CTA becomes that: what the next CTA reads."""

SAME_WORD = OWN_WORDS.replace("lea2  ctaid, #128", "add  zero, #128")
BEFORE = OWN_WORDS.replace("#128", "#60")
"""Writes what the CTA before has read: it did not see it in either order."""


def launch(text: str, ctas: int = 3) -> Launch:
    return Launch(text_to_image(text, "ctas"), {16 + i: 10 * i for i in range(4)}, 2, ctas)


def test_reads_and_writes_of_each_cta() -> None:
    runs = run_ctas_apart(launch(OWN_WORDS))
    assert [run.reads for run in runs] == [{16}, {17}, {18}]
    assert [run.writes for run in runs] == [{32: 5}, {33: 15}, {34: 25}]
    assert dependences(runs) == []
    machine, steps = run_launch(launch(OWN_WORDS))
    assert machine.state.memory[32:35] == [5, 15, 25]
    # Registers are fresh in each CTA, so tokens may differ from those of one after the other.
    assert {s.cta for s in steps} == {0, 1, 2}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (NEIGHBOUR, [Dependence(17, 0, 1, True), Dependence(18, 1, 2, True)]),
        (SAME_WORD, [Dependence(32, 0, 1, False)]),
        (BEFORE, []),
    ],
)
def test_dependences(text: str, found: list[Dependence]) -> None:
    assert dependences(run_ctas_apart(launch(text))) == found


def test_private_words_do_not_count() -> None:
    assert dependences(run_ctas_apart(launch(SAME_WORD)), range(32, 33)) == []


def test_a_word_written_before_it_is_read_is_no_read() -> None:
    text = (
        HEAD
        + """\
block 0:
  A0  lea2  zero, #64
  MEM st    zero
  branch 1
block 1:
  A0  lea2  zero, #64
  MEM ld    -> r1
  branch exit
"""
    )
    (run,) = run_ctas_apart(launch(text, 1))
    assert (run.reads, run.writes) == (frozenset(), {16: 0})


def test_the_limit_is_that_of_all_ctas() -> None:
    count = sum(len(run.steps) for run in run_ctas_apart(launch(OWN_WORDS)))
    assert run_ctas_apart(launch(OWN_WORDS), count)
    with pytest.raises(ExecutionError, match="more than"):
        run_ctas_apart(launch(OWN_WORDS), count - 1)


def test_nothing_runs_behind_a_fault() -> None:
    text = OWN_WORDS.replace("lea2  ctaid, #128", "lea3  r1, #496")
    runs = run_ctas_apart(launch(text))
    assert [run.faulted for run in runs] == [False, True]


def test_some_ctas_here_and_some_there_are_all_of_them() -> None:
    one = launch(OWN_WORDS)
    parts = [run_some_apart(one, range(first, 3, 2), 1000) for first in (0, 1)]
    assert [sorted(part) for part in parts] == [[0, 2], [1]]
    assert up_to_fault(parts[0] | parts[1], 1000) == run_ctas_apart(one)


def test_a_fault_hides_what_would_not_have_run() -> None:
    # CTA 1 faults, CTA 2 never ends.
    text = HEAD + (
        "block 0:\n  A1 setltu ctaid, #2 -> p0\n  branch flag A1 ? 1 : 0\n"
        "block 1:\n  A1 setltu ctaid, #1 -> p0\n  branch flag A1 ? 3 : 2\n"
        "block 2:\n  A0 lea2 tid, #4096\n  MEM st tid\n  branch exit\n"
        "block 3:\n  A0 add tid, #1\n  branch exit\n"
    )
    one = launch(text)
    parts = [run_some_apart(one, range(first, 3, 2), 50) for first in (0, 1)]
    assert [[run.ended for run in part.values()] for part in parts] == [[True, False], [True]]
    runs = up_to_fault(parts[0] | parts[1], 60)
    assert [run.faulted for run in runs] == [False, True]
    with pytest.raises(ExecutionError, match="more than 50"):
        up_to_fault(parts[0], 50)
