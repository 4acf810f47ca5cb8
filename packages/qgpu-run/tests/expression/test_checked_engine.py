"""An engine beside the interpreter: every wrong token is seen, and a new start makes it good."""

from __future__ import annotations

import pytest
from qgpu_isa.interpreter import Launch
from qgpu_run.engines.checked_engine import CheckedEngine
from qgpu_run.launch import run_on_engine


def test_agreement(scale: Launch, lying: type) -> None:
    engine = CheckedEngine(lying())
    run_on_engine(scale, engine)
    assert engine.compare()


@pytest.mark.parametrize("at", [0, 3, 9])
def test_wrong_tokens(at: int, scale: Launch, lying: type) -> None:
    engine = CheckedEngine(lying(at=at, token=1))
    with pytest.raises(Exception):  # noqa: B017, PT011 - what it says is the engine's
        run_on_engine(scale, engine, max_tokens=200)
    assert not engine.compare()
    engine.reset()
    run_on_engine(scale, engine)
    assert engine.compare()


def test_a_wrong_word(scale: Launch, lying: type) -> None:
    engine = CheckedEngine(lying(address=17))
    run_on_engine(scale, engine)
    assert not engine.compare()
