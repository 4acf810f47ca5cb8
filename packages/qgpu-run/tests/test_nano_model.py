"""The real nano model: every token that it decodes is the interpreter's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import NANO
from qgpu_isa.random_programs import random_launch
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_ptx.lowering_errors import MachineLimitError
from qgpu_run.check import check_launch, describe_difference
from qgpu_run.engines.transformers_engine import TransformersEngine
from qgpu_run.kernel_to_launch import kernel_to_request
from qgpu_run.load_model import load_model
from qgpu_run.verify import verify_launch


def slow(seeds: range) -> list[Any]:
    """Seeds that are left to long sweeps."""
    return [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds]


@pytest.fixture(scope="module")
def engine(nano_model: Path) -> TransformersEngine:
    return TransformersEngine(load_model(nano_model))


def assert_exact(launch: Launch, engine: TransformersEngine) -> None:
    report = check_launch(launch, engine)
    if report.difference is not None:
        pytest.fail(describe_difference(launch, report.difference))
    assert not report.words


def test_a_program_on_two_ctas(engine: TransformersEngine, scale: Launch) -> None:
    assert_exact(scale, engine)
    assert engine.read_memory()[16:22] == [200, 210, 220, 230, 240, 0]


def test_a_fault(engine: TransformersEngine, faulty: Launch) -> None:
    report = check_launch(faulty, engine)
    assert report.exact
    assert report.fault is not None


@pytest.mark.parametrize("seed", [*range(3), *slow(range(3, 10))])
def test_random_programs_step_by_step(engine: TransformersEngine, seed: int) -> None:
    assert_exact(random_launch(NANO, seed, max_tokens=40), engine)


@pytest.mark.parametrize("seed", [*range(10, 18), *slow(range(18, 60))])
def test_random_programs_teacher_forced(engine: TransformersEngine, seed: int) -> None:
    report = verify_launch(random_launch(NANO, seed, max_tokens=120), engine)
    assert report.exact
    assert report.min_margin >= 2.0


KERNELS = Path(__file__).resolve().parents[3] / "kernels"


def test_a_cuda_kernel_through_the_command_line(nano_model: Path, invoke) -> None:
    path = KERNELS / "elementwise" / "vector_add.ptx"
    status, text, data = invoke(
        "launch", path, "--model", nano_model, "--check", "--verify", "--block", 4, "--arg", "n=4",
        "--arg", "a=1,2,3,-4", "--arg", "b=10,20,30,40", "--arg", "c=zeros(4)", "--json",
    )  # fmt: skip
    assert status == 0, text
    assert data["exact"] is True
    assert data["engine"] == "transformers"
    assert data["checks"] == ["check", "verify"]
    assert data["outputs"] == {"c": [11, 22, 33, 36]}


FAST = ("matrix/trace", "memory/copy_int4")


def verify_kernel(engine: TransformersEngine, path: Path) -> None:
    try:
        request = kernel_to_request(path, LaunchOptions(), NANO)
    except MachineLimitError:
        pytest.skip("too large for the nano machine")
    report = verify_launch(request.launch, engine)
    if report.first is not None:
        pytest.fail(describe_difference(request.launch, report.first))
    assert report.exact
    assert not request.unexpected(request.read_outputs(report.memory))


@pytest.mark.parametrize("name", FAST)
def test_kernels_that_fit(engine: TransformersEngine, name: str) -> None:
    verify_kernel(engine, KERNELS / f"{name}.ptx")


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(KERNELS.glob("*/*.ptx")), ids=lambda path: path.stem)
def test_every_kernel_that_fits(engine: TransformersEngine, path: Path) -> None:
    verify_kernel(engine, path)
