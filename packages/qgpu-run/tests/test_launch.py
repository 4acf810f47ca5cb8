"""The host's side of a launch: records out, tokens in, ends and faults."""

from __future__ import annotations

import dataclasses

import pytest
from qgpu_isa.interpreter import Launch, run_launch
from qgpu_isa.machine_config import NANO, SMALL
from qgpu_isa.random_programs import random_launch
from qgpu_isa.vocabulary import TokenClass, vocabulary
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.errors import ForeignTokenError, KernelFaultError, RequestError, TokenLimitError
from qgpu_run.launch import run_on_engine


def test_tokens_and_memory_are_the_interpreters(scale: Launch) -> None:
    engine = InterpreterEngine(NANO)
    trace = run_on_engine(scale, engine)
    machine, steps = run_launch(scale)
    encode = vocabulary(NANO).encode
    assert [t for cta in trace.ctas for t in cta] == [encode(s.token) for s in steps]
    assert len(trace.ctas) == 2
    assert trace.decoded_tokens == len(steps)
    assert engine.read_memory() == machine.state.memory
    # Two CTAs have added 100 each.
    assert engine.read_memory()[16:22] == [200, 210, 220, 230, 240, 0]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("config", [NANO, SMALL], ids=["nano", "small"])
def test_setup_records_say_everything(config: object, seed: int) -> None:
    launch = random_launch(config, seed)  # type: ignore[arg-type]
    engine = InterpreterEngine(launch.config)
    machine, steps = run_launch(launch)
    if steps[-1].token.cls is TokenClass.FAULT:
        with pytest.raises(KernelFaultError):
            run_on_engine(launch, engine)
    else:
        assert run_on_engine(launch, engine).decoded_tokens == len(steps)
    assert engine.read_memory() == machine.state.memory


def test_an_engine_can_be_used_again(scale: Launch) -> None:
    engine = InterpreterEngine(NANO)
    first = run_on_engine(scale, engine)
    assert run_on_engine(scale, engine) == first


def test_a_fault_names_cause_place_and_source(faulty: Launch) -> None:
    with pytest.raises(KernelFaultError) as caught:
        run_on_engine(faulty, InterpreterEngine(NANO))
    message = str(caught.value)
    assert message.splitlines() == [
        "wild: memory access out of range in block 1, pass 0, CTA 0 (threads 0, 1)",
        "  at wild.cu:7: a[n] = 1",
    ]
    assert caught.value.exit_code == 1


def test_a_masked_fault_names_its_threads(faulty: Launch) -> None:
    one = dataclasses.replace(faulty, threads=1)
    with pytest.raises(KernelFaultError, match=r"\(threads 0\)"):
        run_on_engine(one, InterpreterEngine(NANO))


def test_an_endless_kernel_is_stopped(endless: Launch) -> None:
    with pytest.raises(TokenLimitError, match="50 tokens"):
        run_on_engine(endless, InterpreterEngine(NANO), max_tokens=50)


def test_the_limit_is_a_bound_not_a_target(scale: Launch) -> None:
    count = run_on_engine(scale, InterpreterEngine(NANO)).decoded_tokens
    assert run_on_engine(scale, InterpreterEngine(NANO), max_tokens=count)
    with pytest.raises(TokenLimitError):
        run_on_engine(scale, InterpreterEngine(NANO), max_tokens=count - 1)


def test_a_text_token_ends_the_launch(scale: Launch, lying) -> None:
    with pytest.raises(ForeignTokenError, match="after 2 tokens the model wrote text token 6"):
        run_on_engine(scale, lying(at=2, token=-7))


def test_another_machine_is_refused(scale: Launch) -> None:
    with pytest.raises(RequestError, match=r"'nano'.*'small'"):
        run_on_engine(scale, InterpreterEngine(SMALL))
