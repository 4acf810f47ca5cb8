"""What all embeddings of the text vocabulary have in common, for bounds that hold for each."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from qgpu_merge.check.open_pair import Pair
from qgpu_merge.qwen35_layout import EMBEDDING, row_ranges


@dataclass(frozen=True)
class TextBounds:
    """Extremes over all text rows of the merged embedding, in float64.

    Attributes:
        largest: max |e_i| per dimension [hidden].
        gate: the text gate's dimension.
        mark: the least value there.
        rms_min, rms_max: extremes of sqrt(mean(e**2) + eps), which RMSNorm divides by.
        image_dims: dimensions [hidden] that an image embedding may use: the base's.
        eps: of the norms.
    """

    largest: torch.Tensor
    gate: int
    mark: float
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
    for first, last in row_ranges(pair.text_tokens):
        # Mapped anew for each block, so that the pages of the one before are given back.
        rows = pair.merged.rows(EMBEDDING, first, last).double()
        largest = torch.maximum(largest, rows.abs().amax(0))
        mean = rows.square().mean(1)
        squares += [float(mean.min()), float(mean.max())]
        marks.append(float(rows[:, pair.text_gate].min()))
    return TextBounds(
        largest,
        pair.text_gate,
        min(marks),
        (min(squares) + eps) ** 0.5,
        (max(squares) + eps) ** 0.5,
        torch.arange(width) < pair.base_hidden,
        eps,
    )
