"""What all embeddings of the text vocabulary have in common, for bounds that hold for each."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from qgpu_merge.check.open_pair import Pair
from qgpu_merge.qwen35_layout import EMBEDDING

BLOCK_ROWS = 8192


@dataclass(frozen=True)
class TextBounds:
    """Extremes over all text rows of the merged embedding, in float64.

    Attributes:
        largest: max |e_i| per dimension [hidden].
        mark: the least value at the text gate; None without marks.
        rms_min, rms_max: extremes of sqrt(mean(e**2) + eps), which RMSNorm divides by.
        image_dims: dimensions [hidden] that an image embedding may use: the base's.
        eps: of the norms.
    """

    largest: torch.Tensor
    mark: float | None
    rms_min: float
    rms_max: float
    image_dims: torch.Tensor
    eps: float


def text_bounds(pair: Pair) -> TextBounds:
    """Reads the text rows of the merged embedding once, block by block."""
    width = pair.merged.shape.axes["hidden"]
    eps = float(pair.merged.config["rms_norm_eps"])
    largest = torch.zeros(width, dtype=torch.float64)
    squares: list[float] = []
    marks: list[float] = []
    for start in range(0, pair.text_tokens, BLOCK_ROWS):
        # Mapped anew for each block, so that the pages of the one before are given back.
        embedding = pair.merged.tensor(EMBEDDING)
        rows = embedding[start : min(start + BLOCK_ROWS, pair.text_tokens)].double()
        del embedding
        largest = torch.maximum(largest, rows.abs().amax(0))
        mean = rows.square().mean(1)
        squares += [float(mean.min()), float(mean.max())]
        if pair.marks is not None:
            marks.append(float(rows[:, pair.marks.text_gate].min()))
    return TextBounds(
        largest,
        min(marks) if marks else None,
        (min(squares) + eps) ** 0.5,
        (max(squares) + eps) ** 0.5,
        torch.arange(width) < pair.base_hidden,
        eps,
    )
