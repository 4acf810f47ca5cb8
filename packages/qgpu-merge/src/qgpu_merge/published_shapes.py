"""Random checkpoints with the published sizes, layout and awkward statistics of Qwen3.5.

They stand in where the real weights cannot be had. Nothing was trained, so their text means
nothing; what they show is that a merge copes with real sizes, and with weights that are hard on it:
heavy-tailed embeddings, a few dimensions far larger than the rest, norm gains from 0.1 to 20.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from qgpu_isa.new_folder import new_folder
from qgpu_isa.qwen35_config import MULTIMODAL_MODEL_TYPE, TEXT_MODEL_TYPE

from qgpu_merge.merge_plan import TensorTask
from qgpu_merge.qwen35_layout import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    Axes,
    Qwen35Shape,
    checkpoint_name,
    is_residual_norm,
    row_ranges,
)
from qgpu_merge.write_checkpoint import CHECKPOINT_FOLDER, Progress, write_json, write_tensors

OUTLIERS = 6
"""Dimensions of the residual stream that are much larger than the rest."""


@dataclass(frozen=True)
class PublishedSize:
    """What tells the published models apart (their config.json, on the hub)."""

    hidden_size: int
    intermediate_size: int
    layers: int
    attention_heads: int
    key_value_heads: int
    value_heads: int


PUBLISHED = {
    "0.8B": PublishedSize(1024, 3584, 24, 8, 2, 16),
    "2B": PublishedSize(2048, 6144, 24, 8, 2, 16),
    "4B": PublishedSize(2560, 9216, 32, 16, 4, 32),
}


def published_config(name: str, layers: int | None = None) -> dict[str, Any]:
    """config.json of a published model, in its multimodal form but without a vision tower.

    Args:
        name: a key of `PUBLISHED`.
        layers: another number of layers, a multiple of 4.
    """
    size = PUBLISHED[name]
    count = layers or size.layers
    every = 4
    text = {
        "model_type": TEXT_MODEL_TYPE,
        "dtype": "bfloat16",
        "vocab_size": 248320,
        "hidden_size": size.hidden_size,
        "intermediate_size": size.intermediate_size,
        "num_hidden_layers": count,
        "full_attention_interval": every,
        "layer_types": [
            "linear_attention" if (i + 1) % every else "full_attention" for i in range(count)
        ],
        "num_attention_heads": size.attention_heads,
        "num_key_value_heads": size.key_value_heads,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": size.value_heads,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "hidden_act": "silu",
        "attention_bias": False,
        "max_position_embeddings": 262144,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "eos_token_id": 248044,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000_000,
            "partial_rotary_factor": 0.25,
            "mrope_section": [11, 11, 10],
            "mrope_interleaved": True,
        },
    }
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": MULTIMODAL_MODEL_TYPE,
        "text_config": text,
        "tie_word_embeddings": True,
        "image_token_id": 248056,
        "video_token_id": 248057,
        "vision_start_token_id": 248053,
        "vision_end_token_id": 248054,
    }


def write_published_base(
    output: Path,
    name: str,
    *,
    layers: int | None = None,
    seed: int = 0,
    force: bool = False,
    start: Callable[[int], Progress] | None = None,
) -> None:
    """Writes a random checkpoint of a published size, the same for the same seed, in bf16.

    Raises:
        OutputError: the folder exists or cannot be written.
    """
    config = published_config(name, layers)
    shape = Qwen35Shape.from_config(config["text_config"])
    tasks = []
    for tensor, axes in shape.tensors():
        if tensor != HEAD:
            pieces = _Random(shape, seed).pieces(tensor, axes)
            stored = checkpoint_name(tensor, multimodal=True)
            tasks.append(TensorTask(stored, shape.size(axes), torch.bfloat16, pieces))
    with new_folder(output, CHECKPOINT_FOLDER, force=force) as folder:
        write_tensors(folder, tasks, progress=start(sum(t.bytes for t in tasks)) if start else None)
        write_json(folder / "config.json", config)


class _Random:
    """Draws tensors, each from a generator of its own."""

    def __init__(self, shape: Qwen35Shape, seed: int) -> None:
        self.shape, self.seed = shape, seed
        large = torch.Generator().manual_seed(seed)
        hidden = shape.axes["hidden"]
        self.outliers = torch.randperm(hidden, generator=large)[:OUTLIERS]

    def pieces(self, name: str, axes: Axes) -> Callable[[], Iterator[torch.Tensor]]:
        size = self.shape.size(axes)

        def make() -> Iterator[torch.Tensor]:
            generator = torch.Generator().manual_seed(zlib.crc32(f"{self.seed} {name}".encode()))
            for first, last in row_ranges(size[0]):
                rows = self._draw(name, axes, (last - first, *size[1:]), generator)
                yield rows.to(torch.bfloat16)

        return make

    def _draw(
        self, name: str, axes: Axes, size: tuple[int, ...], generator: torch.Generator
    ) -> torch.Tensor:
        x = torch.randn(size, generator=generator)
        if name == EMBEDDING:
            # Rows of very different sizes, as frequent and rare tokens have.
            x *= 0.02 * torch.exp(0.7 * torch.randn((size[0], 1), generator=generator))
            x[:, self.outliers] *= 15.0
            return x
        if is_residual_norm(name):
            # From 0.1 to 20, but small where the stream is large, as training leaves them.
            gains = torch.exp((0.5 if name == FINAL_NORM else 1.2) * x).clamp(0.1, 20.0)
            gains[self.outliers] = gains[self.outliers].clamp_max(1.0) * 0.1
            return gains - 1.0
        if name.endswith("A_log"):
            return torch.empty(size).uniform_(0.01, 16.0, generator=generator).log()
        if name.endswith("dt_bias"):
            return x - 3.0
        if name.endswith("norm.weight"):
            return x * 0.2 + (1.0 if "linear_attn" in name else 0.0)
        if name.endswith("conv1d.weight"):
            return x * 0.4
        x *= 1.0 / math.sqrt(size[1])
        if axes[0] == "hidden":
            # Deep random networks are chaotic where their layers write as much as they read.
            x *= 0.3 / math.sqrt(len(self.shape.layer_types))
            x[self.outliers] *= 8.0
        return x
