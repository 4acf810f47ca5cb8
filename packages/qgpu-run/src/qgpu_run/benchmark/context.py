"""What the rows of the benchmark have in common: machine, checkpoint, engines, kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from qgpu_isa.machine_config import NANO, MachineConfig
from qgpu_ptx.launch_options import LaunchOptions

from qgpu_run.errors import RequestError
from qgpu_run.kernel_to_launch import kernel_to_request
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.verify_many import find_kernels

if TYPE_CHECKING:
    from qgpu_run.engines.engine import Engine
    from qgpu_run.engines.sparse.engine import SparseEngine

QUICK_KERNELS = 8
"""With `quick`, every eighth kernel is counted."""


class NotMeasuredError(Exception):
    """A row cannot be measured here; the message says why."""


@dataclass
class Context:
    """One run of the benchmark.

    Attributes:
        config: the machine.
        profile: its name, for commands.
        model: a checkpoint of it; None for the one in the cache.
        kernels: the folder `kernels` of the project.
        quick: few repeats, kernels and sizes.
        repeats: turns.
    """

    config: MachineConfig
    profile: str
    model: Path | None
    kernels: Path
    quick: bool
    repeats: int

    @cached_property
    def checkpoint(self) -> Path:
        """The merged checkpoint, built now if it is missing."""
        from qgpu_run.load_model import ensure_model

        return self.model or ensure_model(self.profile)

    @cached_property
    def sparse(self) -> SparseEngine:
        """The sparse engine, loaded and compiled."""
        from qgpu_run.engines.sparse.engine import load_sparse_engine

        engine = load_sparse_engine(self.checkpoint)
        engine.score([0], 0)
        return engine

    @cached_property
    def transformers(self) -> Engine:
        """The unmodified class."""
        from qgpu_run.load_model import load_model

        # Before the engine's module imports torch: see `let_threads_sleep`.
        loaded = load_model(self.checkpoint)
        from qgpu_run.engines.transformers_engine import TransformersEngine

        return TransformersEngine(loaded)

    @cached_property
    def counted(self) -> list[Path]:
        """The kernels whose tokens are counted."""
        found = find_kernels([self.kernels])
        if not found:
            raise RequestError(f"no kernels in {self.kernels}: go to the project's root")
        return found[:: QUICK_KERNELS if self.quick else 1]

    @property
    def launched(self) -> Path:
        """The kernel of one launch."""
        nano = self.config == NANO
        return self.kernels / ("scan/running_max.cu" if nano else "elementwise/vector_add.cu")

    @cached_property
    def timed(self) -> LaunchRequest:
        """The launch on which engines are compared: some hundred tokens of all kinds."""
        path = self.kernels / ("scan/running_max.cu" if self.config == NANO else "reduce/dot.cu")
        return kernel_to_request(path, LaunchOptions(), self.config)
