"""`qgpu-run bench`: its numbers are counted or measured, never made up, and the page shows them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from qgpu_isa.machine_config import DEFAULT, NANO
from qgpu_run.benchmark import rows
from qgpu_run.benchmark.child import run_child
from qgpu_run.benchmark.compile_once import LINES, source
from qgpu_run.benchmark.context import Context
from qgpu_run.benchmark.growth import exponent, statements_request
from qgpu_run.benchmark.in_turns import in_turns, ratio
from qgpu_run.benchmark.record import FIGURES, markdown_table
from qgpu_run.benchmark.rows import ROWS, count_instructions
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.errors import ModelError
from qgpu_run.launch import run_on_engine

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
FEW = ("control/function_call", "scan/running_max", "reduce/dot")


@pytest.fixture
def few_kernels(tmp_path: Path) -> Path:
    for name in FEW:
        for file in KERNELS.glob(f"{name}.*"):
            (tmp_path / "kernels" / file.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, tmp_path / "kernels" / file.parent.name)
    return tmp_path / "kernels"


def test_engines_and_growth_on_nano(
    invoke, nano_model: Path, few_kernels: Path, tmp_path: Path
) -> None:
    output, picture = tmp_path / "bench.json", tmp_path / "bench.svg"
    status, text, _ = invoke(
        "bench", "--quick", "--profile", "nano", "--model", nano_model, "--kernels", few_kernels,
        "--only", "engines", "--only", "verify", "--only", "growth", "--only", "batch",
        "-o", output, "--plot", picture,
    )  # fmt: skip
    assert status == 0, text
    assert "2/4 growth" in text
    assert "batch: not measured: the arrays need" in text
    data = json.loads(output.read_text())
    assert {figure.key for figure in FIGURES} <= set(data)
    turns = data["details"]["engines"]["tokens_per_second"]
    assert data["sparse_over_transformers"] == turns["sparse"][0] / turns["transformers"][0] > 1
    assert data["verify_over_decode"] > 1
    # Elements fill lanes, then passes; statements fill blocks: neither is free.
    growth = data["details"]["growth"]
    assert growth["growth_elements"]["decoded_tokens"][0] < growth["growth_elements"][
        "decoded_tokens"
    ][-1]  # fmt: skip
    assert growth["growth_ctas"]["sizes"] == growth["growth_ctas_side_by_side"]["sizes"]
    assert (data["emit_seconds"], data["token_ratio_geomean"]) == (None, None)
    assert data["host"]["cores"] >= 1
    assert len(data["load_average"]) == 2
    assert "64 CTAs" not in picture.read_text()
    assert "sparse engine" in picture.read_text()


def test_tokens_and_start(invoke, nano_model: Path, few_kernels: Path) -> None:
    arguments = ("--profile", "nano", "--model", nano_model, "--kernels", few_kernels)
    status, text, data = invoke(
        "bench", "--quick", *arguments, "--only", "tokens", "--only", "start", "--json"
    )
    assert status == 0, text
    _, _, counted = invoke("tokens", few_kernels / "control", "--profile", "nano", "--json")
    assert data["token_ratio_geomean"] == counted["token_ratio_geomean"]
    details = data["details"]["start"]
    assert details["torch_imported"] is False
    assert 0 < data["load_seconds"] < data["first_token_seconds"] < details["whole_launch"][0]
    assert data["peak_bytes"] > 50 << 20


def test_a_compilation_in_a_process_of_its_own() -> None:
    run = run_child("qgpu_run.benchmark.compile_once", ["default", "1"])
    assert run.output["torch_imported"] is False
    assert abs(run.output["lines"] - LINES) <= 5
    assert run.output["lines"] == len(source("k", 1).splitlines())
    assert run.seconds > run.output["first_seconds"] > run.output["runs"][0] > 0
    assert run.peak_bytes > 10 << 20


def test_a_process_that_fails_is_named() -> None:
    with pytest.raises(ModelError, match=r"compile_once huge 1 failed: (.|\n)*no machine profile"):
        run_child("qgpu_run.benchmark.compile_once", ["huge", "1"])


def test_turns_and_ratios() -> None:
    order: list[str] = []

    def measure(name: str, value: float) -> float:
        order.append(name)
        return value * len(order)

    a, b = in_turns(2, lambda: measure("a", 1.0), lambda: measure("b", 10.0))
    assert (order, a, b) == (["a", "b", "a", "b"], [1.0, 3.0], [20.0, 40.0])
    assert ratio([4.0, 9.0, 100.0], [2.0, 3.0, 1.0]) == 3.0
    assert exponent([1, 2, 4], [5.0, 20.0, 80.0]) == pytest.approx(2)


def test_instructions_are_counted_for_every_thread(scale) -> None:
    # Two blocks of 3 instructions, 5 threads, 2 CTAs.
    assert count_instructions(scale) == 2 * 5 * 6


def test_a_kernel_of_statements_gives_what_python_gives() -> None:
    request = statements_request(DEFAULT, 9)
    engine = InterpreterEngine(DEFAULT)
    run_on_engine(request.launch, engine)
    assert request.unexpected(request.read_outputs(engine.read_memory())) == []
    assert len(request.launch.image.blocks) > len(
        statements_request(DEFAULT, 2).launch.image.blocks
    )


def test_a_wrong_engine_has_no_speed(lying, few_kernels: Path) -> None:
    context = Context(NANO, "nano", None, few_kernels, True, 1)
    context.__dict__ |= {"transformers": InterpreterEngine(NANO), "sparse": lying(at=9)}
    context.transformers.name = "transformers"
    context.sparse.name = "sparse"
    with pytest.raises(ModelError, match="do not agree"):
        rows.compare_engines(context)


def test_what_cannot_be_written_is_refused_before_anything_runs(invoke, tmp_path: Path) -> None:
    for options, part in (
        (("--plot", tmp_path / "p.bmp"), "a plot is one of"),
        (("-o", tmp_path / "none" / "b.json"), "there is no folder"),
        (("--only", "speed"), "'speed' is not one of"),
    ):
        status, text, _ = invoke("bench", *options)
        assert (status, part in text) == (2, True), text


def test_the_help_lists_all_rows_and_the_table_all_figures(invoke) -> None:
    _, text, _ = invoke("bench", "--help")
    assert all(row.what in text for row in ROWS)
    table = markdown_table({"emit_seconds": 12.34, "peak_bytes": 3 << 20})
    assert "| `emit_seconds` | `qgpu-circuit emit` | 12.3 s |" in table
    assert "| 3 MiB |" in table
    assert (
        "| `batch64_over_1` | tokens a second of 64 CTAs side by side over one, sparse | - |"
        in table
    )
