"""Every tensor of a Qwen3.5 text checkpoint: its name and its axes, written down once.

Axes have names instead of sizes, so that widening a checkpoint is one rule for all tensors:
whatever has one of the axes in `GROWN_AXES` is padded along it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qgpu_isa.qwen35_config import FULL, LINEAR

Axes = tuple[str, ...]

EMBEDDING = "embed_tokens.weight"
FINAL_NORM = "norm.weight"
HEAD = "lm_head.weight"

MODEL_TENSORS: dict[str, Axes] = {
    EMBEDDING: ("vocab", "hidden"),
    FINAL_NORM: ("hidden",),
    HEAD: ("vocab", "hidden"),
}

LAYER_TENSORS: dict[str, Axes] = {
    "input_layernorm.weight": ("hidden",),
    "post_attention_layernorm.weight": ("hidden",),
    "mlp.gate_proj.weight": ("intermediate", "hidden"),
    "mlp.up_proj.weight": ("intermediate", "hidden"),
    "mlp.down_proj.weight": ("hidden", "intermediate"),
}

MIXER_TENSORS: dict[str, dict[str, Axes]] = {
    LINEAR: {
        "linear_attn.in_proj_qkv.weight": ("qkv", "hidden"),
        "linear_attn.in_proj_z.weight": ("value", "hidden"),
        "linear_attn.in_proj_b.weight": ("value_heads", "hidden"),
        "linear_attn.in_proj_a.weight": ("value_heads", "hidden"),
        "linear_attn.conv1d.weight": ("qkv", "one", "kernel"),
        "linear_attn.dt_bias": ("value_heads",),
        "linear_attn.A_log": ("value_heads",),
        "linear_attn.norm.weight": ("value_head_dim",),
        "linear_attn.out_proj.weight": ("hidden", "value"),
    },
    FULL: {
        "self_attn.q_proj.weight": ("query_and_gate", "hidden"),
        "self_attn.k_proj.weight": ("key_value", "hidden"),
        "self_attn.v_proj.weight": ("key_value", "hidden"),
        "self_attn.o_proj.weight": ("hidden", "query"),
        "self_attn.q_norm.weight": ("head_dim",),
        "self_attn.k_norm.weight": ("head_dim",),
    },
}

MIXER_NORM = "input_layernorm.weight"
MLP_NORM = "post_attention_layernorm.weight"
RESIDUAL_NORMS = (MIXER_NORM, MLP_NORM, FINAL_NORM)
"""Norms over the residual stream; they store their gain less 1."""

VISION = "model.visual."
"""Prefix of the vision tower's tensors in a multimodal checkpoint."""

VISION_OUT = "model.visual.merger.linear_fc2"
"""The layer that writes image embeddings: weight [hidden, ...] and bias [hidden]."""

DRAFT = "mtp."
"""Prefix of the multi-token prediction module's tensors."""


@dataclass(frozen=True)
class Qwen35Shape:
    """The sizes that decide every tensor's shape.

    Attributes:
        axes: axis name -> size.
        layer_types: `linear_attention` or `full_attention` per layer.
    """

    axes: Mapping[str, int]
    layer_types: tuple[str, ...]

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Qwen35Shape:
        """The shape that a text config describes (`qgpu_isa.qwen35_config.check_text_config`)."""
        key_dim = config["linear_num_key_heads"] * config["linear_key_head_dim"]
        value_dim = config["linear_num_value_heads"] * config["linear_value_head_dim"]
        query = config["num_attention_heads"] * config["head_dim"]
        axes = {
            "one": 1,
            "vocab": config["vocab_size"],
            "hidden": config["hidden_size"],
            "intermediate": config["intermediate_size"],
            "kernel": config["linear_conv_kernel_dim"],
            "qkv": 2 * key_dim + value_dim,
            "value": value_dim,
            "key_heads": config["linear_num_key_heads"],
            "key_head_dim": config["linear_key_head_dim"],
            "value_heads": config["linear_num_value_heads"],
            "value_head_dim": config["linear_value_head_dim"],
            "query": query,
            "query_and_gate": 2 * query,
            "key_value": config["num_key_value_heads"] * config["head_dim"],
            "head_dim": config["head_dim"],
        }
        return cls(axes, tuple(config["layer_types"]))

    def size(self, axes: Axes) -> tuple[int, ...]:
        """The sizes of named axes."""
        return tuple(self.axes[axis] for axis in axes)

    @property
    def values_per_key(self) -> int:
        """Value heads that share a key head."""
        return self.axes["value_heads"] // self.axes["key_heads"]

    def segments(self, axis: str) -> tuple[int, ...]:
        """Sizes of the parts of an axis that lie one behind the other, each padded by itself."""
        if axis != "qkv":
            return (self.axes[axis],)
        keys = self.axes["key_heads"] * self.axes["key_head_dim"]
        return keys, keys, self.axes["value"]

    def layer_tensors(self, layer: int) -> dict[str, Axes]:
        """Names (without `layers.N.`) and axes of one layer's tensors."""
        return LAYER_TENSORS | MIXER_TENSORS[self.layer_types[layer]]

    def tensors(self) -> Iterator[tuple[str, Axes]]:
        """Full names (without `model.`) and axes of all tensors, the head included."""
        yield EMBEDDING, MODEL_TENSORS[EMBEDDING]
        for layer in range(len(self.layer_types)):
            for name, axes in self.layer_tensors(layer).items():
                yield f"layers.{layer}.{name}", axes
        yield FINAL_NORM, MODEL_TENSORS[FINAL_NORM]
        yield HEAD, MODEL_TENSORS[HEAD]


GROWN_AXES = ("hidden", "intermediate", "qkv", "value", "value_heads")
"""Axes along which a base may be padded; of these only `qkv` has several segments."""


def segment_places(own: Sequence[int], grown: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Per segment of an axis: where it begins, where it begins in the padded axis, its size."""
    begin = place = 0
    for size, room in zip(own, grown, strict=True):
        yield begin, place, size
        begin, place = begin + size, place + room


def is_residual_norm(name: str) -> bool:
    """Whether a full tensor name is a norm over the residual stream."""
    stem = name.split(".", 2)[2] if name.startswith("layers.") else name
    return stem in RESIDUAL_NORMS


def norm_before(name: str, axes: Axes) -> str | None:
    """Full name of the norm through which a matrix reads the residual stream, if it does."""
    if name == HEAD:
        return FINAL_NORM
    if name == EMBEDDING or len(axes) != 2 or axes[1] != "hidden":
        return None
    prefix, number, stem = name.split(".", 2)
    return f"{prefix}.{number}.{MLP_NORM if stem.startswith('mlp.') else MIXER_NORM}"


PREFIX = "model."
NESTED_PREFIX = "model.language_model."


def language_prefix(stored: Container[str]) -> str:
    """What stands in front of the language model's names, in files with the tensors `stored`."""
    return NESTED_PREFIX if NESTED_PREFIX + FINAL_NORM in stored else PREFIX


def checkpoint_name(name: str, *, multimodal: bool = False) -> str:
    """The name in a checkpoint file."""
    if name == HEAD:
        return name
    return (NESTED_PREFIX if multimodal else PREFIX) + name


ROWS_AT_A_TIME = 8192


def row_ranges(count: int, at_a_time: int = ROWS_AT_A_TIME) -> Iterator[tuple[int, int]]:
    """First row and the one behind the last, of some rows of a matrix at a time."""
    for first in range(0, count, at_a_time):
        yield first, min(first + at_a_time, count)
