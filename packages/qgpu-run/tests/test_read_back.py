"""What the model writes out is what memory holds, whatever it holds and whatever ran before."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from qgpu_isa.interpreter import Launch, run_launch
from qgpu_isa.machine_config import DEFAULT, NANO, PROFILES, SMALL, MachineConfig
from qgpu_isa.random_programs import random_launch
from qgpu_isa.text_to_image import text_to_image
from qgpu_isa.vocabulary import TokenClass
from qgpu_run.engines.engine import Engine
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.engines.read_back_engine import ReadBackEngine
from qgpu_run.engines.sparse.engine import load_sparse_engine
from qgpu_run.errors import RequestError
from qgpu_run.launch import run_on_engine
from qgpu_run.panel.machine_view import MachineView
from qgpu_run.read_back import ReadBackError, decode_read_back, pieces, read_back_program

WORD = st.one_of(
    st.integers(0, 2**32 - 1),
    st.integers(0, 20),
    st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32 - 8, 0xFFFF, 0x10000]),
)


def ranges(config: MachineConfig) -> st.SearchStrategy[range]:
    ends = st.tuples(st.integers(0, config.memory_words - 1), st.integers(1, config.memory_words))
    short = st.tuples(st.integers(0, config.memory_words - 1), st.integers(1, 3 * config.lanes))
    return st.one_of(ends, short).map(lambda p: range(p[0], min(p[0] + p[1], config.memory_words)))


@st.composite
def contents(draw: st.DrawFn, config: MachineConfig) -> dict[int, int]:
    """Memory in which runs of words are alike in kind."""
    memory: dict[int, int] = {}
    for wanted in draw(st.lists(ranges(config), max_size=4)):
        kind = draw(st.sampled_from(["any", "one", "count"]))
        some = draw(st.lists(WORD, min_size=1, max_size=12))
        for index, address in enumerate(wanted):
            word = some[index % len(some)] if kind == "any" else some[0]
            memory[address] = (word + 4 * index * (kind == "count")) % 2**32
    return memory


STOP = """\
.machine {name}
.program stop
block 0:
  branch exit
"""


def launched(engine: Engine, launch: Launch) -> ReadBackEngine:
    made = ReadBackEngine(engine)
    run_on_engine(launch, made)
    return made


def check(engine: Engine, memory: dict[int, int], wanted: list[range]) -> ReadBackEngine:
    config = engine.config
    image = text_to_image(STOP.format(name=config.name), "stop")
    made = launched(engine, Launch(image, memory))
    for once in (wanted, wanted[:1]):
        words = made.read_words(once)
        assert words == {a: memory.get(a, 0) for piece in once for a in piece}
    return made


@pytest.mark.parametrize("config", PROFILES.values(), ids=PROFILES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_memory_as_the_interpreter_writes_it(config: MachineConfig, data: st.DataObject) -> None:
    memory = data.draw(contents(config))
    check(InterpreterEngine(config), memory, data.draw(st.lists(ranges(config), max_size=3)))


@pytest.fixture(scope="module")
def sparse(nano_model: Path) -> Engine:
    return load_sparse_engine(nano_model)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_memory_as_the_nano_model_writes_it(sparse: Engine, data: st.DataObject) -> None:
    memory = data.draw(contents(NANO))
    made = check(sparse, memory, data.draw(st.lists(ranges(NANO), max_size=3)))
    assert made.read_memory() == sparse.read_memory()


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10_000), wanted=st.lists(ranges(NANO), min_size=1, max_size=2))
def test_behind_random_programs(sparse: Engine, seed: int, wanted: list[range]) -> None:
    """Registers and program are what a kernel left."""
    launch = random_launch(NANO, seed, max_tokens=60)
    machine, steps = run_launch(launch)
    assume(steps[-1].token.cls is TokenClass.END)
    memory = machine.state.memory
    expected = {a: memory[a] for piece in wanted for a in piece}
    assert launched(InterpreterEngine(NANO), launch).read_words(wanted) == expected
    assert launched(sparse, launch).read_words(wanted) == expected


def test_all_of_memory_with_words_that_take_the_most(sparse: Engine) -> None:
    memory = {a: 0x80000001 + 0x1234567 * a & 0xFFFFFFFF for a in range(NANO.memory_words)}
    made = check(sparse, memory, [range(NANO.memory_words)])
    assert made.decoded > 0


@pytest.mark.parametrize(
    ("config", "words", "spread", "most"),
    [
        (NANO, 32, 2**32 - 1, 5.8),
        (SMALL, 256, 2**32 - 1, 2.9),
        (DEFAULT, 256, 2**32 - 1, 2.8),
        (DEFAULT, 256, 2**16 - 1, 1.5),
        (DEFAULT, 256, 15, 0.75),
        (DEFAULT, 256, 0, 0.32),
    ],
)
def test_tokens_a_word(config: MachineConfig, words: int, spread: int, most: float) -> None:
    """What docs/server.md says."""
    memory = {a: (0x9E3779B9 * (a + 1) & 0xFFFFFFFF) % (spread + 1) for a in range(words)}
    made = ReadBackEngine(InterpreterEngine(config))
    run_on_engine(Launch(text_to_image(STOP.format(name=config.name), "stop"), memory), made)
    made.read_words([range(words)])
    assert most - 0.25 < made.decoded / words <= most


def test_programs_use_few_blocks_and_no_words_beside() -> None:
    one = read_back_program(DEFAULT, 5, 128)
    assert len(one.image.blocks) == 1
    assert one.threads == 128
    two = read_back_program(DEFAULT, 5, 129)
    assert len(two.image.blocks) == 2
    assert two.threads == 72
    whole = read_back_program(DEFAULT, 0, DEFAULT.memory_words)
    assert len(whole.image.blocks) == 40


@pytest.mark.parametrize(("start", "words"), [(-1, 2), (0, 0), (127, 2), (0, 129)])
def test_ranges_that_are_not_there(start: int, words: int) -> None:
    with pytest.raises(RequestError, match="has 128"):
        read_back_program(NANO, start, words)


def test_pieces() -> None:
    assert list(pieces(NANO, [range(4, 6), range(2), range(5, 9)])) == [range(2), range(4, 9)]
    tiny = MachineConfig("tiny", 2, 1, 2, 1, 2, 14, 2)
    assert list(pieces(tiny, [range(10)])) == [range(4), range(4, 8), range(8, 10)]
    check_tiny = ReadBackEngine(InterpreterEngine(tiny))
    assert check_tiny.read_words([range(10)]) == dict.fromkeys(range(10), 0)


def test_tokens_that_do_not_tell_the_words() -> None:
    made = read_back_program(NANO, 0, 4)
    with pytest.raises(ReadBackError, match="does not tell word 0 of 4"):
        decode_read_back(made, MachineView(NANO), [])


def test_no_read_back_within_a_cta(scale: Launch) -> None:
    made = ReadBackEngine(InterpreterEngine(NANO))

    class Left(Exception):
        pass

    def leave(cta: int, token: int) -> None:
        raise Left

    with pytest.raises(Left):
        run_on_engine(scale, made, on_token=leave)
    with pytest.raises(RequestError, match="where no CTA runs"):
        made.read_memory()
