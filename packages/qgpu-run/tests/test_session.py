"""Launches one after the other in one recurrent state: program and memory are written over."""

from __future__ import annotations

from pathlib import Path

import pytest
from qgpu_isa.interpreter import Launch, Machine, run_launch
from qgpu_isa.machine_config import NANO, SMALL
from qgpu_isa.random_programs import random_launch
from qgpu_isa.vocabulary import TokenClass
from qgpu_run.engines.engine import Engine
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.engines.sparse.engine import load_sparse_engine
from qgpu_run.engines.transformers_engine import TransformersEngine
from qgpu_run.errors import KernelFaultError, TokenLimitError
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.load_model import load_model
from qgpu_run.session import Session


def launches(config, count: int, max_tokens: int) -> list[Launch]:
    """Random programs that end, in only global memory."""
    found: list[Launch] = []
    seed = 0
    while len(found) < count:
        launch = random_launch(config, seed, max_tokens=max_tokens)
        _, steps = run_launch(launch)
        if steps[-1].token.cls is TokenClass.END:
            found.append(launch)
        seed += 1
    return found


def compare(engine: Engine, chosen: list[Launch]) -> None:
    """Every launch does what it does on a machine with the registers and words before it."""
    session = Session(engine)
    before: Machine | None = None
    for launch in chosen:
        memory = {a: w for a, w in launch.memory.items() if a < launch.config.global_words}
        machine = Machine(Launch(launch.image, memory, launch.threads, launch.ctas))
        if before is not None:
            machine.state.registers = before.state.registers
            machine.state.predicates = before.state.predicates
            shared = before.state.memory[launch.config.global_words :]
            machine.state.memory[launch.config.global_words :] = shared
        steps = []
        for cta in range(launch.ctas):
            machine.start_cta(cta)
            steps += list(machine.decode(cta))
        before = machine
        if steps[-1].token.cls is TokenClass.FAULT:
            return
        trace, words = session.run(LaunchRequest(machine.launch))
        assert trace.decoded_tokens == len(steps)
        assert words == machine.state.memory


@pytest.mark.parametrize("config", [NANO, SMALL], ids=["nano", "small"])
def test_programs_in_one_state_on_the_interpreter(config) -> None:
    compare(InterpreterEngine(config), launches(config, 12, 150))


def test_programs_in_one_state_on_the_weights(nano_model: Path) -> None:
    engine = load_sparse_engine(nano_model)
    chosen = launches(NANO, 40, 120)
    for low in range(0, 40, 8):
        compare(engine, chosen[low : low + 8])


def test_programs_in_one_state_on_the_unmodified_class(nano_model: Path) -> None:
    compare(TransformersEngine(load_model(nano_model)), launches(NANO, 2, 20))


def test_only_what_differs_is_sent(scale: Launch) -> None:
    session = Session(InterpreterEngine(NANO))
    one = LaunchRequest(Launch(scale.image, scale.memory, scale.threads))
    first, words = session.run(one)
    assert words[16:21] == [100, 110, 120, 130, 140]
    again, words = session.run(
        LaunchRequest(Launch(scale.image, dict(enumerate(words)), scale.threads))
    )
    assert words[16:21] == [200, 210, 220, 230, 240]
    changed = dict(enumerate(words)) | {16: 1}
    third, words = session.run(LaunchRequest(Launch(scale.image, changed, scale.threads)))
    assert words[16:21] == [101, 310, 320, 330, 340]
    word_record = 5
    assert third.setup_tokens == again.setup_tokens + word_record
    assert first.setup_tokens > again.setup_tokens + 4 * word_record


@pytest.mark.parametrize("sms", [1, 2])
def test_a_launch_that_fails_empties_the_state(
    faulty: Launch, endless: Launch, scale: Launch, sms: int
) -> None:
    session = Session(InterpreterEngine(NANO))
    one = LaunchRequest(Launch(scale.image, scale.memory, scale.threads))
    first, words = session.run(one)
    with pytest.raises(KernelFaultError):
        session.run(LaunchRequest(faulty), sms=sms)
    assert session.run(one) == (first, words)
    with pytest.raises(TokenLimitError):
        session.run(LaunchRequest(endless), sms=sms, assume_independent=True, max_tokens=20)
    assert session.run(one) == (first, words)
