"""The sizes of the transformer that a circuit is compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa import MachineConfig
from qgpu_isa.machine_config import CHUNKS_PER_RECORD

from qgpu_circuit.residual_map import EXTRA_DIMENSIONS, ResidualMap

CONV_KERNEL = CHUNKS_PER_RECORD
"""Taps of the causal convolution: a record is cut so that its last token sees all of it."""


@dataclass(frozen=True)
class ModelShape:
    """Sizes shared by all layers of the checkpoint (`Qwen3_5TextConfig` in transformers).

    Attributes:
        hidden_size: width of the residual stream.
        base_hidden: width of the base model, whose dimensions are in front.
        intermediate_size: SwiGLU neurons a layer.
        heads: key heads of a layer's DeltaNet; the circuit uses as many.
        rows: key dimension of a head (rows of its state).
        columns: value dimension of a head (columns of its state).
        values_per_key: value heads that share a key head; the circuit uses the first of them.
        rms_norm_eps: epsilon of every RMSNorm.
    """

    hidden_size: int
    base_hidden: int
    intermediate_size: int
    heads: int
    rows: int
    columns: int
    values_per_key: int = 1
    rms_norm_eps: float = 1e-6

    @property
    def value_heads(self) -> int:
        """Value heads of a layer's DeltaNet."""
        return self.heads * self.values_per_key

    @property
    def residual(self) -> ResidualMap:
        """The fixed dimensions."""
        return ResidualMap(self.base_hidden)


SHAPES: dict[str, ModelShape] = {
    "nano": ModelShape(
        hidden_size=768 + EXTRA_DIMENSIONS,
        base_hidden=768,
        intermediate_size=1536,
        heads=12,
        rows=32,
        columns=64,
    ),
    "small": ModelShape(
        hidden_size=1024 + EXTRA_DIMENSIONS,
        base_hidden=1024,
        intermediate_size=3584,
        heads=16,
        rows=128,
        columns=128,
    ),
    "default": ModelShape(
        hidden_size=2048 + EXTRA_DIMENSIONS,
        base_hidden=2048,
        intermediate_size=6144,
        heads=16,
        rows=128,
        columns=128,
    ),
}
"""What each machine profile needs: `small` the 0.8B's shape, `default` the 2B's, each wider."""


def shape_for(config: MachineConfig) -> ModelShape:
    """The shape that a profile is compiled for."""
    return SHAPES[config.name]
