"""Shared fixtures: programs, engines that lie, and the real nano model."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import NANO
from qgpu_isa.program_json import image_to_json
from qgpu_isa.text_to_image import text_to_image
from qgpu_run.engines.engine import Prediction
from qgpu_run.engines.interpreter_engine import InterpreterEngine

os.environ["HF_HUB_OFFLINE"] = "1"
# Read when torch is imported: its threads sleep while they wait, so busy cores do not stall it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

SCALE = """\
.machine nano
.program scale
block 0: ; scale.cu:3
  A0  lea2  tid, #64
  MEM ld    -> r1
  A1  add   MEM, #100 -> r2
  branch 1
block 1: ; scale.cu:4
  A0  lea2  tid, #64
  MEM st    r2
  A1  setltu tid, #2 -> p0
  branch exit
"""
"""Adds 100 to words 16.. of memory, one a thread."""

FAULTY = """\
.machine nano
.program wild
block 0:
  A0  lea2  tid, #64 -> r1
  branch 1
block 1: ; wild.cu:7: a[n] = 1
  A0  lea2  tid, #4096
  MEM st    r1
  branch exit
"""

ENDLESS = """\
.machine nano
.program forever
block 0:
  A0 add tid, #1
  branch 0
"""


class LyingEngine(InterpreterEngine):
    """Writes another token than it should at one position, and a wrong word at one address."""

    name = "lying"

    def __init__(
        self, *, at: int | None = None, token: int = 0, address: int | None = None
    ) -> None:
        super().__init__(NANO)
        self.at, self.token, self.address = at, token, address
        self.written = 0

    def feed(self, tokens: Sequence[int]) -> Prediction:
        prediction = super().feed(tokens)
        return self._lie(prediction)

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        honest = [InterpreterEngine.feed(self, [token]) for token in tokens][first:]
        return [self._lie(prediction) for prediction in honest]

    def _lie(self, prediction: Prediction) -> Prediction:
        self.written += 1
        return Prediction(self.token, 3.0) if self.written - 1 == self.at else prediction

    def read_memory(self, row: int = 0) -> list[int]:
        words = super().read_memory(row)
        if self.address is not None:
            words[self.address] ^= 1
        return words


@pytest.fixture
def scale() -> Launch:
    return Launch(text_to_image(SCALE, "scale"), {16 + i: 10 * i for i in range(5)}, 5, 2)


@pytest.fixture
def faulty() -> Launch:
    return Launch(text_to_image(FAULTY, "wild"), {}, 5)


@pytest.fixture
def endless() -> Launch:
    return Launch(text_to_image(ENDLESS, "forever"), {}, 2)


@pytest.fixture
def lying() -> type[LyingEngine]:
    return LyingEngine


@pytest.fixture
def image_files(tmp_path: Path) -> Path:
    """A folder with scale.qasm, scale.json, wild.qasm, forever.qasm."""
    for name, text in (("scale", SCALE), ("wild", FAULTY), ("forever", ENDLESS)):
        (tmp_path / f"{name}.qasm").write_text(text)
    (tmp_path / "scale.json").write_text(image_to_json(text_to_image(SCALE, "scale")))
    return tmp_path


@pytest.fixture(scope="session")
def nano_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The merged nano model, built by the command line into a fresh cache ($QGPU_CACHE if set)."""
    if find_spec("qgpu_circuit.cli") is None:
        pytest.skip("the circuit compiler is not there yet")
    from qgpu_run.load_model import ensure_model

    with pytest.MonkeyPatch.context() as patch:
        if "QGPU_CACHE" not in os.environ:
            patch.setenv("QGPU_CACHE", str(tmp_path_factory.mktemp("cache")))
        return ensure_model("nano")


@pytest.fixture
def invoke():
    """Runs `qgpu-run` and gives exit status, stdout, stderr and the JSON object if any."""
    from qgpu_run.cli import main

    def run(*arguments: object) -> tuple[int, str, dict[str, object]]:
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        data = json.loads(result.stdout) if result.stdout.startswith("{") else {}
        return result.exit_code, result.output, data

    return run
