"""A wrong token or word is found and explained, by check and by verify."""

from __future__ import annotations

import pytest
from qgpu_isa.interpreter import Launch, run_launch
from qgpu_isa.machine_config import NANO
from qgpu_isa.random_programs import random_launch
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary
from qgpu_run.check import check_launch, describe_difference, describe_words
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.verify import verify_launch

VOCAB = vocabulary(NANO)


@pytest.mark.parametrize("seed", range(8))
def test_an_honest_engine_is_exact(seed: int) -> None:
    launch = random_launch(NANO, seed)
    report = check_launch(launch, InterpreterEngine(NANO))
    _, steps = run_launch(launch)
    assert report.exact
    assert report.tokens == len(steps)
    verified = verify_launch(launch, InterpreterEngine(NANO))
    assert verified.exact
    assert verified.positions == len(steps)
    assert (verified.fault is None) == (report.fault is None)


@pytest.mark.parametrize("at", [0, 1, 3, 11])
def test_a_wrong_token_is_found_where_it_is(scale: Launch, lying, at: int) -> None:
    _, steps = run_launch(scale)
    wrong = VOCAB.encode(Token(TokenClass.STOP, (2, 31)))
    for report in (
        check_launch(scale, lying(at=at, token=wrong)).difference,
        verify_launch(scale, lying(at=at, token=wrong)).first,
    ):
        assert report is not None
        assert report.index == at
        assert report.expected == steps[at]
        assert report.found == "STOP(2, 31)"
        assert report.before == tuple(str(s.token) for s in steps[max(0, at - 4) : at])


def test_the_explanation_names_instruction_and_source(scale: Launch, lying) -> None:
    wrong = VOCAB.encode(Token(TokenClass.UNIFORM, (7, 2)))
    report = check_launch(scale, lying(at=0, token=wrong))
    assert not report.exact
    assert report.difference is not None
    assert describe_difference(scale, report.difference).splitlines() == [
        "token 0 differs",
        f"  expected  {run_launch(scale)[1][0].token}",
        "  found     UNIFORM(7, 2)",
        "  in        block 0, pass 0, lanes 11, CTA 0",
        "  result    slot MEM: ld -> r1",
        "  source    scale.cu:3",
    ]


def test_a_predicate_is_named_as_one(scale: Launch, lying) -> None:
    _, steps = run_launch(scale)
    at = next(i for i, s in enumerate(steps) if s.block == 1 and s.slot is not None)
    report = check_launch(scale, lying(at=at, token=0))
    assert report.difference is not None
    assert "slot A1: setltu -> p0" in describe_difference(scale, report.difference)


def test_going_on_after_the_end_is_a_difference(scale: Launch, lying) -> None:
    _, steps = run_launch(scale)
    end = next(i for i, s in enumerate(steps) if s.token.cls is TokenClass.END)
    report = check_launch(scale, lying(at=end, token=VOCAB.encode(Token(TokenClass.STOP, (3, 31)))))
    assert report.difference is not None
    assert report.difference.index == end


def test_text_and_unknown_tokens_are_differences(scale: Launch, lying) -> None:
    for token, words in ((-1, "text token 0"), (VOCAB.size, f"unknown token {VOCAB.size}")):
        report = check_launch(scale, lying(at=1, token=token))
        assert report.difference is not None
        assert report.difference.found == words


def test_a_launch_that_goes_astray_stops_at_once(endless: Launch, lying) -> None:
    engine = lying(at=4, token=0)
    report = check_launch(endless, engine, max_tokens=10**9)
    assert report.difference is not None
    assert engine.written == 5


def test_memory_is_compared(scale: Launch, lying) -> None:
    report = check_launch(scale, lying(address=17))
    assert not report.exact
    assert report.difference is None
    text = describe_words(report.words)
    assert "word 17: expected 0x000000d2, found 0x000000d3" in text
    assert not verify_launch(scale, lying(address=17)).exact


def test_verify_counts_and_measures(scale: Launch, lying) -> None:
    report = verify_launch(scale, lying(at=5, token=1))
    assert (report.differences, report.min_margin) == (1, 3.0)
    assert not report.exact


def test_a_fault_that_both_see_is_exact(faulty: Launch) -> None:
    report = check_launch(faulty, InterpreterEngine(NANO))
    assert report.exact
    assert report.fault is not None
    assert "out of range" in report.fault
    verified = verify_launch(faulty, InterpreterEngine(NANO))
    assert verified.fault == report.fault
