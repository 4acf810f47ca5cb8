"""The sizes of the transformer that a circuit is compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa import MachineConfig
from qgpu_isa.machine_config import CHUNKS_PER_RECORD

CONV_KERNEL = CHUNKS_PER_RECORD
"""Taps of the causal convolution: a record is cut so that its last token sees all of it."""


@dataclass(frozen=True)
class ModelShape:
    """Sizes shared by all layers of the checkpoint (`Qwen3_5TextConfig` in transformers).

    Attributes:
        hidden_size: width of the residual stream, base dimensions included.
        base_hidden: dimensions in front that belong to the base model.
        intermediate_size: SwiGLU neurons a layer.
        heads: DeltaNet heads a layer, as many for keys as for values.
        rows: key dimension of a head (rows of its state).
        columns: value dimension of a head (columns of its state).
        rms_norm_eps: epsilon of every RMSNorm.
    """

    hidden_size: int
    base_hidden: int
    intermediate_size: int
    heads: int
    rows: int
    columns: int
    rms_norm_eps: float = 1e-6

    @property
    def dimensions(self) -> int:
        """Residual dimensions that the circuit may use."""
        return self.hidden_size - self.base_hidden


SHAPES: dict[str, ModelShape] = {
    "nano": ModelShape(
        hidden_size=896,
        base_hidden=64,
        intermediate_size=1536,
        heads=12,
        rows=32,
        columns=64,
    ),
    "small": ModelShape(
        hidden_size=1024 + 128,
        base_hidden=24,
        intermediate_size=3584,
        heads=16,
        rows=128,
        columns=128,
    ),
    "default": ModelShape(
        hidden_size=2048 + 128,
        base_hidden=32,
        intermediate_size=6144,
        heads=16,
        rows=128,
        columns=128,
    ),
}
"""Shape of each machine profile: `small` is the 0.8B's, `default` the 2B's, each 128 wider."""


def shape_for(config: MachineConfig) -> ModelShape:
    """The shape that a profile is compiled for."""
    return SHAPES[config.name]
