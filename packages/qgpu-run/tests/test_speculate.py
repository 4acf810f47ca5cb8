"""Drafts: the weights' tokens win, whatever the host proposes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import NANO
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_run.engines.engine import Engine, Prediction
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.engines.sparse.engine import load_sparse_engine
from qgpu_run.errors import ForeignTokenError
from qgpu_run.kernel_to_launch import kernel_to_request
from qgpu_run.launch import LaunchTrace, run_on_engine, setup_tokens
from qgpu_run.speculate import InterpreterDrafter, SpeculatingEngine

KERNELS = Path(__file__).resolve().parents[3] / "kernels"


class CorruptDrafter(InterpreterDrafter):
    """Changes every draft whose place in the stream is named."""

    def __init__(self, at: Sequence[int]) -> None:
        self.at = at
        super().__init__(NANO)

    def reset(self) -> None:
        super().reset()
        self.seen = 0

    def see(self, tokens: Sequence[int]) -> None:
        super().see(tokens)
        self.seen += len(tokens)

    def propose(self, count: int) -> list[int]:
        drafts = super().propose(count)
        return [d + (self.seen + i in self.at) for i, d in enumerate(drafts)]


class CountingEngine(InterpreterEngine):
    """The interpreter, which reads what it would not have written as the model does: somehow.

    Behind a wrong token its predictions are token 0, and its memory counts as spoilt.
    """

    def reset(self) -> None:
        super().reset()
        self.wrong = False
        self.reads: list[int] = []

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        self.reads.append(len(tokens))
        found = []
        for token in tokens:
            self.wrong |= self._steps is not None and token != self._vocab.encode(self._next)
            found.append(
                Prediction(0, 1.0) if self.wrong else InterpreterEngine.feed(self, [token])
            )
        return found[first:]

    def feed(self, tokens: Sequence[int]) -> Prediction:
        return self.score(tokens, len(tokens) - 1)[0]

    def read_memory(self, row: int = 0) -> list[int]:
        assert not self.wrong
        return super().read_memory(row)


def plain(launch: Launch, engine: Engine) -> tuple[LaunchTrace, list[int]]:
    return run_on_engine(launch, engine), engine.read_memory()


@pytest.mark.parametrize("count", [1, 2, 5, 1000])
def test_drafts_change_passes_and_nothing_else(scale: Launch, count: int) -> None:
    wanted = plain(scale, InterpreterEngine(NANO))
    inner = CountingEngine(NANO)
    engine = SpeculatingEngine(inner, draft_tokens=count)
    assert plain(scale, engine) == wanted
    found = engine.speculation
    assert (found.drafted, found.accepted) == (wanted[0].decoded_tokens,) * 2
    assert (found.rejected, found.plain_passes, found.first_rejection) == (0, 0, None)
    assert found.passes == sum(-(-len(tokens) // count) for tokens in wanted[0].ctas)
    assert len(inner.reads) == found.passes


@pytest.mark.parametrize("count", [1, 3, 8, 1000])
def test_a_corrupt_draft_is_rejected_and_drafting_goes_on(scale: Launch, count: int) -> None:
    wanted = plain(scale, InterpreterEngine(NANO))
    first = wanted[0].setup_tokens // 2 + 4
    for at in ([first], [first, first + 1], list(range(0, 400, 3)), list(range(400))):
        drafter = CorruptDrafter(at)
        engine = SpeculatingEngine(CountingEngine(NANO), drafter, count)
        assert plain(scale, engine) == wanted
        assert engine.speculation.followed
        assert engine.speculation.rejected > 0 or len(at) < 3
        assert engine.speculation.accepted < wanted[0].decoded_tokens or len(at) < 3


class StubbornEngine(CountingEngine):
    """Writes RAW(7) once, at a place in the stream, and text ever after."""

    at = 0

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        start = sum(self.reads)
        found = super().score(tokens, 0)
        for index, prediction in enumerate(found):
            if start + index == self.at:
                found[index] = Prediction(7, 2.0)
            elif prediction.token == 0:
                found[index] = Prediction(-5, 2.0)
        return found[first:]


def test_the_weights_win_against_the_interpreter(scale: Launch) -> None:
    inner = StubbornEngine(NANO)
    inner.at = len(setup_tokens(scale, 0)) + 4
    with pytest.raises(ForeignTokenError) as alone:
        run_on_engine(scale, inner)
    engine = SpeculatingEngine(inner, draft_tokens=8)
    with pytest.raises(ForeignTokenError) as drafted:
        run_on_engine(scale, engine)
    assert str(drafted.value) == str(alone.value)
    found = engine.speculation
    # Five drafts are accepted behind the setup; after the sixth there is nobody to draft.
    assert (found.accepted, found.rejected, found.passes) == (5, 1, 2)
    assert (found.followed, found.plain_passes) == (False, 1)
    (_, line) = found.lines()
    assert "after 5 accepted drafts" in line
    assert "the weights wrote RAW(7)" in line
    assert line.endswith("; decoded on without drafts")


def test_on_the_weights(nano_model: Path) -> None:
    path = KERNELS / "scan" / "running_max.cu"
    launch = kernel_to_request(path, LaunchOptions(), NANO).launch
    sparse = load_sparse_engine(nano_model)
    wanted = plain(launch, sparse)
    setup = wanted[0].setup_tokens
    for at in ([], [setup + 10], [setup + 10, setup + 11, setup + 90]):
        engine = SpeculatingEngine(sparse, CorruptDrafter(at), 32)
        assert plain(launch, engine) == wanted
        assert engine.speculation.rejected == len(at)
        assert engine.speculation.passes < wanted[0].decoded_tokens / 4
    assert "after 10 accepted drafts" in (engine.speculation.first_rejection or "")


def test_the_command(invoke, nano_model: Path, image_files: Path) -> None:
    command = ("launch", image_files / "scale.qasm", "--model", nano_model, "--block", 5, "--grid",
               2, "--arg", "16=1,2,3,4,5")  # fmt: skip
    for engine in ("sparse", "transformers"):
        options = ("--engine", engine, "--speculate", "--draft-tokens", 16)
        status, text, data = invoke(*command, *options, "--check", "--json")
        assert status == 0, text
        assert data["exact"] is True
        found = data["speculation"]
        assert found["accepted"] == found["drafted"] == data["tokens"]
        assert (found["rejected"], found["plain_passes"]) == (0, 0)
        assert found["passes"] <= -(-data["tokens"] // 16) + 2
    options = ("--engine", "sparse", "--speculate")
    _, text, _ = invoke(*command, *options)
    assert f"the weights accepted {data['tokens']} and rejected 0" in text
    _, _, without = invoke(*command, "--engine", "sparse", "--json")
    assert without["speculation"] is None
    assert without["outputs"] == data["outputs"]
    for other in (("--verify",), ("--sms", 2)):
        status, text, _ = invoke(*command, *options, *other)
        assert (status, "takes no --verify, no --sms" in text) == (2, True), text
