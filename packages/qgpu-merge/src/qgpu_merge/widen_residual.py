"""Base tensors widened to the merged residual stream, without changing what they compute.

RMSNorm averages over the whole width, so on text, where the new dimensions are zero, every
normalised value grows by sqrt(d'/d). The norm's gain takes that back. A gain is stored less 1 in
bf16, which is most precise near a gain of 1: the power of two that is nearest to the factor moves
into the matrices behind the norm, where it is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from qgpu_merge.qwen35_layout import HEAD, Axes, is_residual_norm, reads_residual


@dataclass(frozen=True)
class Widening:
    """From `old` to `new` dimensions.

    Attributes:
        old: width of the base model.
        new: width of the merged model.
    """

    old: int
    new: int

    @property
    def shift(self) -> int:
        """Matrices that read a norm are multiplied by 2**shift."""
        return round(math.log2(math.sqrt(self.old / self.new)))

    @property
    def gain(self) -> float:
        """Factor on the gains; between 0.7 and 1.42."""
        return math.sqrt(self.old / self.new) / 2.0**self.shift

    def widen(self, name: str, axes: Axes, tensor: torch.Tensor) -> torch.Tensor:
        """A base tensor with its `hidden` axis padded, in bf16.

        Gains on new dimensions are 0 (stored as -1), matrix elements there are 0.
        """
        dense = tensor.float()
        if is_residual_norm(name):
            out = torch.full((self.new,), -1.0)
            out[: self.old] = (1.0 + dense) * self.gain - 1.0
            return out.to(torch.bfloat16)
        if reads_residual(axes) or name == HEAD:
            dense = dense * 2.0**self.shift
        return pad(dense, axes, "hidden", self.new).to(torch.bfloat16)


def pad(tensor: torch.Tensor, axes: Axes, axis: str, size: int) -> torch.Tensor:
    """The tensor with zeros behind its elements along a named axis, if it has that axis."""
    if axis not in axes:
        return tensor
    shape = list(tensor.shape)
    shape[axes.index(axis)] = size
    if tuple(shape) == tuple(tensor.shape):
        return tensor
    out = torch.zeros(shape, dtype=tensor.dtype)
    out[tuple(slice(0, n) for n in tensor.shape)] = tensor
    return out
