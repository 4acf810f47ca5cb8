"""Whether a row of a GPU layer's matrix is muted on every text token, by an interval bound.

A row w of gate_proj, in_proj_z or in_proj_b reads x_i = e_i (1 + n_i) / rms, where e is the
embedding of the token, n the weight of the norm and rms = sqrt(mean(e**2) + eps) <= rms_max. With
e[gate] >= mark > 0 at the text gate,

    w.x <= (w[gate] (1 + n[gate]) mark + sum over other i of |w_i (1 + n_i)| max|e_i|) / rms.

If the first term is negative and larger than (the sum) (1 + 2**-6) + 200 rms_max, the row is below
-200, where silu and sigmoid are exactly 0 in fp32 and in bf16: exp(200) overflows and x / inf = 0.
The factor covers rounding: bf16 rounds a normalised value by 2**-9 of it, and sums of products are
kept in fp32. n is taken both as stored and as bf16 holds it.

A row that is 0 wherever an embedding is not gives exactly 0, and silu(0) = 0; sigmoid(0) is 1/2, so
in_proj_b must be muted. A row whose result is multiplied by a column of zeros does not count.

All that is for finite values: 0 times an infinite `up` would be NaN. So the same sum, with the
gate's own term, over rms_min bounds every matrix of the layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from qgpu_merge.check.text_bounds import TextBounds

ROUNDING = 1.0 + 2.0**-6
DEPTH = 200.0
FINITE = 2.0**120
BLOCK_ROWS = 2048
"""Rows that are in float64 at a time."""


@dataclass(frozen=True)
class RowBound:
    """Verdicts on the rows of one matrix, each [rows].

    Attributes:
        zero: the row gives exactly 0 on text.
        ratio: depth of the mute over what it has to exceed; muted above 1.
        image: largest |e_i| of an image embedding on which the row is still silent.
        largest: the largest result in magnitude on text.
    """

    zero: torch.Tensor
    ratio: torch.Tensor
    image: torch.Tensor
    largest: torch.Tensor


def row_bound(matrix: torch.Tensor, norm: torch.Tensor, bounds: TextBounds) -> RowBound:
    """Bounds the rows of `matrix` [rows, hidden] behind a norm of weight `norm` [hidden]."""
    blocks = []
    for rows in torch.split(matrix, BLOCK_ROWS):
        weight = rows.double()
        one, two = (_bound(weight, n.double(), bounds) for n in (norm, norm.bfloat16()))
        blocks.append(
            RowBound(
                one.zero & two.zero,
                torch.minimum(one.ratio, two.ratio),
                torch.minimum(one.image, two.image),
                # torch's maximum, unlike Python's, does not lose a NaN.
                torch.maximum(one.largest, two.largest),
            )
        )
    return RowBound(*(torch.cat(part) for part in zip(*map(_parts, blocks), strict=True)))


def _parts(bound: RowBound) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    return bound.zero, bound.ratio, bound.image, bound.largest


def _bound(weight: torch.Tensor, norm: torch.Tensor, bounds: TextBounds) -> RowBound:
    gain = 1.0 + norm
    size, gate = weight.abs(), bounds.gate
    # Negative where the weight has the wrong sign; a mark that is not positive mutes nothing.
    mute = 0.0 - weight[:, gate] * gain[gate] * max(bounds.mark, 0.0)
    text = (gain.abs() * bounds.largest).index_fill(0, torch.tensor(gate), 0.0)
    image = (gain.abs() * bounds.image_dims).index_fill(0, torch.tensor(gate), 0.0)
    others = size @ text
    gate_size = size @ (gain.abs() * bounds.largest) - others
    zero = (others == 0) & (gate_size == 0)
    # An image embedding fills the base's dimensions: rms <= M sqrt(share) + sqrt(eps).
    share = float(bounds.image_dims.double().mean())
    marks_only = size @ (text * ~bounds.image_dims)
    room = mute - DEPTH * bounds.eps**0.5 - marks_only * ROUNDING
    reach = (size @ image) * ROUNDING
    largest_image = room / (reach + DEPTH * share**0.5)
    silent_on_images = zero & (reach == 0)
    return RowBound(
        zero,
        mute / (others * ROUNDING + DEPTH * bounds.rms_max),
        torch.where(silent_on_images, torch.inf, largest_image.clamp(min=0.0)),
        (others + gate_size) / bounds.rms_min,
    )
