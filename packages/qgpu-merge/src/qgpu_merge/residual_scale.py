"""By which power of two the residual stream of text is scaled.

Scaling lets epsilon count exactly as in the base (`Widening`). With a head of its own that costs
nothing. A head that is the embedding is scaled with it, and the final norm has to divide by the
scale, whose gains bf16 may then round worse: near a gain of 1 it is precise, near 1/2 it is not. So
tied models are scaled where epsilon would show otherwise, or where it makes rounding better, and
untied where neither will do.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from qgpu_merge.widen_residual import Widening

MOST_DIVERGENCE = 8e-6
"""In fp32, what epsilon alone may cost before the stream is scaled for it."""

DIVERGENCE_PER_SQUARE = 300.0
"""KL for a mean square relative error of 1 of the first norm, as measured on random models."""

MOST_GAIN_ERROR = 6e-4
"""Root mean square relative error of a tied model's final gains that bf16 hardly shows."""


def choose_scale(
    widening: Widening, embedding: Iterator[torch.Tensor], norm: torch.Tensor
) -> tuple[int, bool]:
    """The scale of a model whose head is its embedding: 1, 2 or 4; and whether bf16 bears it.

    Args:
        widening: the widths.
        embedding: rows of the base's embedding, [rows, old] at a time.
        norm: [old] the final norm's stored weight.
    """
    scales = [1, 2, 4]
    if epsilon_divergence(widening, embedding) > MOST_DIVERGENCE:
        scales.remove(1)
    errors = {scale: gain_error(widening, norm, scale) for scale in scales}
    best = min(scales, key=errors.__getitem__)
    return best, errors[best] <= MOST_GAIN_ERROR**2


def epsilon_divergence(widening: Widening, embedding: Iterator[torch.Tensor]) -> float:
    """About the KL in fp32 that an unscaled stream would have from epsilon in the first norm."""
    total, count = 0.0, 0
    for rows in embedding:
        mean = rows.float().square().mean(dim=1).double()
        off = 0.5 * (1 - widening.old / widening.new) * widening.epsilon
        total += float((off / (mean + widening.epsilon)).square().sum())
        count += len(rows)
    return DIVERGENCE_PER_SQUARE * total / max(count, 1)


def gain_error(widening: Widening, norm: torch.Tensor, scale: int) -> float:
    """Mean square relative error of a tied model's final gains, rounded to bf16."""
    exact = widening.norm(norm, None, divide=scale)[: widening.old]
    rounded = exact.to(torch.bfloat16).float()
    relative = (rounded - exact) / (1 + exact).abs().clamp_min(1e-6)
    return float(relative.double().square().mean())
