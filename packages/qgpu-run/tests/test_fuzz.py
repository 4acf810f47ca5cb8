"""Random programs in batches: the same findings as one by one, and a wrong engine is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from qgpu_isa.machine_config import NANO
from qgpu_isa.random_programs import random_launch
from qgpu_run.engines.engine import RowScorer
from qgpu_run.fuzz import fuzz
from qgpu_run.open_engine import EngineChoice
from qgpu_run.progress import Progress
from qgpu_run.verify import teacher_stream, verify_launch


@pytest.mark.parametrize("name", [pytest.param("transformers", marks=pytest.mark.slow), "sparse"])
def test_rows_of_a_batch_are_what_they_are_alone(nano_model: Path, name: str) -> None:
    engine = EngineChoice(name, model=nano_model).open(NANO, Progress())
    assert isinstance(engine, RowScorer)
    launches = [random_launch(NANO, number, max_tokens=40) for number in range(6)]
    streams = [teacher_stream(launch) for launch in launches]
    assert len({len(stream.tokens) for stream in streams}) > 1
    rows = engine.score_rows([stream.tokens for stream in streams])
    memories = [engine.read_memory(row) for row in range(len(rows))]
    for launch, stream, row, memory in zip(launches, streams, rows, memories, strict=True):
        alone = verify_launch(launch, engine)
        assert alone.exact
        assert alone.memory == tuple(memory)
        assert alone.min_margin == min(row[p].margin for p in stream.positions)


def test_the_command_keeps_a_record(invoke, nano_model: Path, tmp_path: Path) -> None:
    record = tmp_path / "fuzz.json"
    arguments = ("--model", nano_model, "--first", 7, "--programs", 5, "--batch", 3)
    status, text, _ = invoke("fuzz", *arguments, "-o", record, "--json")
    assert status == 0, text
    kept = json.loads(record.read_text())
    assert (kept["machine"], kept["first"], kept["programs"], kept["exact"]) == ("nano", 7, 5, 5)
    assert kept["min_margin"] >= 8
    assert kept["tokens"] > 5
    assert "5 of 5 programs exact" in text


def test_a_lying_engine_is_found(invoke, lying, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EngineChoice, "open", lambda *_: lying(at=0, token=0))
    status, text, _ = invoke("fuzz", "--profile", "nano", "--programs", 3)
    assert status == 1
    assert "2 of 3 programs exact" in text
    assert "program 0: token 0 differs" in text
    *_, report = fuzz(lying(address=100), 4, 2, batch=1, max_tokens=20)
    assert sorted(report.failures) == [4, 5]
    assert "word 100" in report.failures[4]
