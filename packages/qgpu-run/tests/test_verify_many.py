"""Many kernels on one model: what fits is verified, the rest is named."""

from __future__ import annotations

from pathlib import Path

from qgpu_isa.machine_config import NANO
from qgpu_run.open_engine import EngineChoice
from qgpu_run.progress import Progress
from qgpu_run.verify_many import verify_kernels

KERNELS = Path(__file__).resolve().parents[3] / "kernels" / "elementwise"


def test_kernels_that_do_not_fit_are_not_run(nano_model: Path) -> None:
    engine = EngineChoice("sparse", model=nano_model).open(NANO, Progress())
    files = [KERNELS / "vector_add.cu", KERNELS / "grid_stride_square.cu"]
    large, small = verify_kernels(files, NANO, engine, 10_000)
    assert not large.ran
    assert large.state.startswith("not run: ")
    assert small.ran
    assert small.state == "exact"
