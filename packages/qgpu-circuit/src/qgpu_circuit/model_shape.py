"""The sizes of the transformer that a circuit is compiled for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu_isa import MachineConfig
from qgpu_isa.checked_json import load_object
from qgpu_isa.machine_config import CHUNKS_PER_RECORD
from qgpu_isa.qwen35_config import check_text_config

from qgpu_circuit.layers import CircuitError
from qgpu_circuit.residual_map import EXTRA_DIMENSIONS, ResidualMap

BASE_SIZES = (
    "hidden_size",
    "intermediate_size",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
)
"""Sizes of a base that its circuit shares, or starts from."""

CONV_KERNEL = CHUNKS_PER_RECORD
"""Taps of the causal convolution: a record is cut so that its last token sees all of it."""


@dataclass(frozen=True)
class ModelShape:
    """Sizes shared by all layers of the checkpoint (`Qwen3_5TextConfig` in transformers).

    Attributes:
        hidden_size: width of the residual stream.
        base_hidden: width of the base model, whose dimensions are in front.
        intermediate_size: SwiGLU neurons a layer.
        heads: key heads of a layer's DeltaNet; the circuit uses as many. Padding adds heads, but
            never changes their size.
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
    def label(self) -> str:
        """The shape as part of a file name."""
        sizes = (self.hidden_size, self.intermediate_size, self.heads, self.value_heads)
        return "x".join(map(str, (self.base_hidden, *sizes, self.rows, self.columns)))

    def padded(self, base: Mapping[str, Any]) -> bool:
        """Whether a base of these sizes grows by more than the fixed dimensions."""
        wider = self.hidden_size > int(base["hidden_size"]) + EXTRA_DIMENSIONS
        more = self.intermediate_size > int(base["intermediate_size"])
        return wider or more or self.heads > int(base["linear_num_key_heads"])

    def manifest(self) -> dict[str, Any]:
        """The shape in a circuit's manifest, by the names of `Qwen3_5TextConfig`."""
        return {
            "hidden_size": self.hidden_size,
            "base_hidden": self.base_hidden,
            "intermediate_size": self.intermediate_size,
            "linear_num_key_heads": self.heads,
            "linear_num_value_heads": self.value_heads,
            "linear_key_head_dim": self.rows,
            "linear_value_head_dim": self.columns,
            "rms_norm_eps": self.rms_norm_eps,
        }

    @classmethod
    def from_manifest(cls, sizes: Mapping[str, Any]) -> ModelShape:
        """What `manifest` made.

        Raises:
            KeyError: a size is missing.
        """
        keys = sizes["linear_num_key_heads"]
        return cls(
            hidden_size=sizes["hidden_size"],
            base_hidden=sizes["base_hidden"],
            intermediate_size=sizes["intermediate_size"],
            heads=keys,
            rows=sizes["linear_key_head_dim"],
            columns=sizes["linear_value_head_dim"],
            values_per_key=sizes["linear_num_value_heads"] // keys,
            rms_norm_eps=sizes["rms_norm_eps"],
        )

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
    """The shape that a profile is compiled for when no base is named."""
    return SHAPES[config.name]


def shape_for_base(config: MachineConfig, base: Mapping[str, Any]) -> ModelShape:
    """The shape of a machine in front of a base; larger than the base's where the machine needs it.

    Args:
        base: the base's text config, as `read_base_config` gives it.

    Raises:
        CircuitError: the circuit cannot work with it.
    """
    need = shape_for(config)
    sizes = {name: base[name] for name in BASE_SIZES}
    if base.get("rms_norm_eps", need.rms_norm_eps) != need.rms_norm_eps:
        raise CircuitError(
            f"the base's rms_norm_eps is {base['rms_norm_eps']}; "
            f"the circuit is exact with {need.rms_norm_eps}"
        )
    hidden, keys = sizes["hidden_size"], sizes["linear_num_key_heads"]
    heads = max(keys, need.heads)
    sizes |= {
        "base_hidden": hidden,
        "hidden_size": max(hidden + EXTRA_DIMENSIONS, need.hidden_size),
        "intermediate_size": max(sizes["intermediate_size"], need.intermediate_size),
        "linear_num_key_heads": heads,
        "linear_num_value_heads": heads * (sizes["linear_num_value_heads"] // keys),
    }
    return ModelShape.from_manifest(sizes | {"rms_norm_eps": need.rms_norm_eps})


def read_base_config(path: Path) -> dict[str, Any]:
    """The text config in a config.json, or in the checkpoint folder that holds one.

    Raises:
        CircuitError: it cannot be read, or is no config that a circuit can work with.
    """
    path = path / "config.json" if path.is_dir() else path
    return check_text_config(load_object(path, CircuitError), str(path), CircuitError)
