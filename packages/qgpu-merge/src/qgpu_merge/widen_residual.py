"""Base tensors widened to the merged residual stream, without changing what they compute.

RMSNorm averages over the whole width, so on text, where the new dimensions are 0, every normalised
value grows by sqrt(d'/d). The norm's gain takes that back. A gain is stored less 1, and a model in
bf16 rounds what is stored: that is most precise near a gain of 1. So each gain's power of two moves
into the columns of the matrices behind the norm, where it is exact; what stays is between 0.7 and
1.42.

The norm also adds its epsilon to the mean of squares, where it would count for d'/d as much, and
tokens with small embeddings would show it. Where the residual stream is scaled by a power of two
(exact in what writes it), epsilon counts for too little, and one new dimension holds a constant
whose square is the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from qgpu_merge.errors import MergeError
from qgpu_merge.qwen35_layout import segment_places

LEAST_MARK = 2.0**-12
"""A text token's mark where nothing else decides it: its square vanishes beside epsilon."""

MOST_SHIFT = 24
"""Exponents stay within this: far from where bf16's own range ends."""


@dataclass(frozen=True)
class Widening:
    """From `old` to `new` dimensions.

    Attributes:
        old: width of the base model.
        new: width of the merged model.
        epsilon: of the base's norms.
        scale: what the residual stream of text is multiplied by, a power of two; from
            `exact_scale` on, epsilon counts as in the base.
    """

    old: int
    new: int
    epsilon: float = 1e-6
    scale: int = 1

    @property
    def factor(self) -> float:
        """What every gain is multiplied by."""
        return math.sqrt(self.old / self.new)

    @property
    def exact_scale(self) -> int:
        """The least power of two that is more than sqrt(new / old)."""
        return 1 << (math.floor(math.log2(self.new / self.old) / 2) + 1)

    @property
    def text_mark(self) -> float:
        """What one new dimension holds on text.

        With y the base's x and x = scale * y, it makes (sum x**2 + mark**2) / new + epsilon equal
        to scale**2 * old / new times (sum y**2 / old + epsilon), if the scale is large enough. If
        not it is only a mark.
        """
        rest = self.epsilon * (self.scale**2 * self.old - self.new)
        return math.sqrt(rest) if rest > 0 else LEAST_MARK

    def exponents(self, norm: torch.Tensor) -> torch.Tensor:
        """Per dimension, the power of two that leaves a gain for the columns behind the norm.

        Args:
            norm: [old], the stored weight of the base's norm (gain - 1).

        Returns:
            [old], int32.
        """
        gain = ((1.0 + norm.double()) * self.factor).abs()
        exponents = torch.log2(gain.clamp_min(2.0**-MOST_SHIFT)).round()
        return torch.where(gain > 0, exponents, 0.0).clamp_max(MOST_SHIFT).int()

    def norm(
        self, norm: torch.Tensor, exponents: torch.Tensor | None, divide: float = 1.0
    ) -> torch.Tensor:
        """A residual norm's weight, [old] to fp32 [new]; new dimensions get the gain 0.

        Args:
            norm: the base's stored weight.
            exponents: what the matrices behind it take over; None if they take nothing.
            divide: what the gains are divided by.
        """
        gain = (1.0 + norm.double()) * self.factor / divide
        if exponents is not None:
            gain = torch.ldexp(gain, -exponents)
        out = torch.full((self.new,), -1.0)
        out[: self.old] = (gain - 1.0).float()
        return out

    def behind_norm(self, name: str, matrix: torch.Tensor, exponents: torch.Tensor) -> torch.Tensor:
        """A matrix [rows, old] that reads a norm, its columns times 2**exponents, exactly.

        Raises:
            MergeError: the dtype does not hold a product.
        """
        shifts = torch.ldexp(torch.ones(self.old), exponents).to(matrix.dtype)
        out = matrix * shifts
        if not torch.equal(out / shifts, matrix):
            raise MergeError(
                f"{name} has elements too small or too large to be scaled in {matrix.dtype}"
            )
        return out


def pad(tensor: torch.Tensor, axis: int, own: Sequence[int], grown: Sequence[int]) -> torch.Tensor:
    """The tensor with zeros behind each segment of an axis (`Qwen35Shape.segments`)."""
    if tuple(own) == tuple(grown):
        return tensor
    size = list(tensor.shape)
    size[axis] = sum(grown)
    out = torch.zeros(size, dtype=tensor.dtype)
    for begin, place, length in segment_places(own, grown):
        out.narrow(axis, place, length).copy_(tensor.narrow(axis, begin, length))
    return out
