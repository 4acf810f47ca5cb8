"""Thousands of random programs through the weights, teacher-forced: long, so marked slow.

`QGPU_CACHE` (default `~/.cache/qgpu`) keeps the models between runs. `qgpu-run fuzz` runs any
number of further programs.
"""

from __future__ import annotations

import pytest
from qgpu_isa import profile
from qgpu_run.fuzz import fuzz
from qgpu_run.open_engine import EngineChoice
from qgpu_run.progress import Progress

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "engine", "programs"),
    [
        ("nano", "sparse", 10_000),
        ("nano", "transformers", 1_000),
        ("default", "sparse", 200),
        ("default", "transformers", 20),
    ],
)
def test_random_programs_are_exact(name: str, engine: str, programs: int) -> None:
    made = EngineChoice(engine, name).open(profile(name), Progress())
    *_, report = fuzz(made, 0, programs, batch=10, max_tokens=60)
    assert report.programs == report.exact == programs, report.failures
    assert report.min_margin >= 8
