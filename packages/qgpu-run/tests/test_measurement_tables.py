"""docs/measurements.md says what the records say, and the records are of all kernels."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from qgpu_isa.machine_config import profile
from qgpu_run.benchmark.record import FIGURES
from qgpu_run.launch import MAX_TOKENS
from qgpu_run.measure_tokens import TokenReport, measure_kernels
from qgpu_run.verify_many import find_kernels

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "docs" / "scripts" / "measurement_tables.py"


@pytest.fixture(scope="module")
def script() -> dict:
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def kernels() -> list[str]:
    return [f"{file.parent.name}/{file.stem}" for file in find_kernels([ROOT / "kernels"])]


def test_the_page_is_fresh(script: dict) -> None:
    text = script["PAGE"].read_text(encoding="utf-8")
    names = [match[2] for match in script["TABLE"].finditer(text)]
    assert sorted(names) == sorted(script["TABLES"])
    assert script["page"](text) == text, f"run: uv run python {SCRIPT.relative_to(ROOT)}"


def test_the_records_are_of_all_kernels(script: dict, kernels: list[str]) -> None:
    verified = script["record"]("default-verify-sparse")
    assert [kernel["kernel"] for kernel in verified] == kernels
    assert script["record"]("tokens")["default"]["kernels_counted"] == len(kernels)
    assert script["record"]("passes")["kernels"] == len(kernels)
    assert f"\n{len(kernels)} kernels.\n" in (ROOT / "kernels" / "README.md").read_text()
    listed = (ROOT / "docs" / "tokens_measured.md").read_text()
    rows = [line.split("|")[1].strip() for line in listed.splitlines() if line.startswith("| ")]
    assert rows[2:] == kernels
    assert f"over {len(kernels)} kernels on machine 'default'" in listed


def test_the_bench_record_is_a_whole_one_with_a_picture(script: dict) -> None:
    data = script["record"]("bench")
    assert (data["machine"], data["quick"], data["skipped"]) == ("default", False, {})
    assert all(isinstance(data[figure.key], float) for figure in FIGURES)
    picture = (ROOT / "docs" / "images" / "bench.svg").read_text()
    assert f"{data['sparse_over_transformers']:,.1f}" in picture
    assert data["token_ratio_geomean"] == pytest.approx(
        script["record"]("tokens")["default"]["token_ratio_geomean"]
    )


def test_a_table_without_a_name_is_refused(script: dict) -> None:
    with pytest.raises(KeyError, match="unknown"):
        script["page"]("<!-- table unknown -->\n<!-- end of table -->")


@pytest.mark.slow
def test_the_counted_records_are_what_is_counted_now(script: dict) -> None:
    files = find_kernels([ROOT / "kernels"])
    for name, machine in script["record"]("tokens").items():
        counted = tuple(measure_kernels(files, profile(name), MAX_TOKENS))
        report = TokenReport(name, counted)
        assert json.loads(json.dumps(script["kinds"](report))) == machine["kinds"]
        assert report.floor_share_geomean == pytest.approx(machine["floor_share_geomean"])
