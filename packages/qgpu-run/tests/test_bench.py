"""Engines compared: counts are exact, ratios are of the first, wrong engines have no speed."""

from __future__ import annotations

from pathlib import Path

import pytest
from qgpu_isa.machine_config import NANO
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_run.bench_engines import bench_engines
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.errors import ModelError
from qgpu_run.kernel_to_launch import kernel_to_request

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
FILES = [KERNELS / "scan" / "running_max.cu", KERNELS / "matrix" / "trace.cu"]


def test_sparse_beside_the_interpreter(invoke, nano_model: Path) -> None:
    command = ("engines", *FILES, "--profile", "nano", "--model", nano_model, "--decode", 9)
    engines = ("--engine", "interpreter", "--engine", "sparse")
    status, _, data = invoke(*command, *engines, "--json")
    assert status == 0
    assert data["kernels"] == ["trace", "running_max"]
    assert [row["engine"] for row in data["engines"]] == ["interpreter", "sparse"]
    assert all(row["decoded_tokens"] == 16 for row in data["engines"])
    first, second = (row["decode_tokens_per_second"] for row in data["engines"])
    assert data["engines"][1]["decode_ratio"] == pytest.approx(second / first)
    status, text, _ = invoke(*command, *engines)
    assert status == 0
    assert "machine 'nano', 2 launches" in text


def test_an_engine_that_lies_is_not_timed(lying) -> None:
    requests = [kernel_to_request(FILES[0], LaunchOptions(), NANO)]
    with pytest.raises(ModelError, match=r"running_max: engine .* do not agree"):
        bench_engines(requests, [lambda: InterpreterEngine(NANO), lambda: lying(at=5, token=0)], 20)


def test_throughput_by_ctas(invoke) -> None:
    status, text, data = invoke(
        "scale", "--engine", "interpreter", "--profile", "small", "--ctas", 1, "--ctas", 3,
        "--repeats", 1, "--json",
    )  # fmt: skip
    assert status == 0, text
    one, three = data["launches"]
    assert (one["ctas"], one["ratio"], three["ctas"]) == (1, 1.0, 3)
    assert three["decoded_tokens"] > 2.5 * one["decoded_tokens"]
    status, text, _ = invoke("scale", "--engine", "interpreter", "--profile", "nano")
    assert status == 2, text
