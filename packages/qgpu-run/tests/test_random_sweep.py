"""Thousands of random programs through the weights, teacher-forced: long, so marked slow.

`QGPU_CACHE` (default `~/.cache/qgpu`) keeps the models between runs.
"""

from __future__ import annotations

from functools import lru_cache

import pytest
from qgpu_isa import profile
from qgpu_isa.random_programs import random_launch
from qgpu_run.engines.transformers_engine import TransformersEngine
from qgpu_run.load_model import ensure_model, load_model
from qgpu_run.verify import verify_launch

pytestmark = pytest.mark.slow

SWEEPS = [("nano", 100, group) for group in range(100)]
SWEEPS += [("default", 10, group) for group in range(20)]


@lru_cache(maxsize=1)
def engine(name: str) -> TransformersEngine:
    """The engine of a profile, one at a time in memory."""
    return TransformersEngine(load_model(ensure_model(name)))


@pytest.mark.parametrize(("name", "count", "group"), SWEEPS)
def test_random_programs_are_exact(name: str, count: int, group: int) -> None:
    for seed in range(group * count, (group + 1) * count):
        report = verify_launch(random_launch(profile(name), seed), engine(name))
        assert report.exact, f"seed {seed}: {report.first} {report.words}"
        assert report.min_margin >= 8, f"seed {seed}"
