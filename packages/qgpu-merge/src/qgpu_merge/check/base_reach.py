"""How far the base's layers can move the residual stream on any token, from their weights.

On text a base stays finite as it always did. On GPU tokens it reads what the circuit left, which
it was never trained on, so that nothing but its weights limits what it computes. What it adds does
not reach a GPU token's logit as long as it is finite: an infinite element would make the final norm
NaN.

A norm over the residual stream gives x with ||x||_2 <= sqrt(hidden), times its gain g. So a row w
of a matrix behind it gives at most ||w g||_2 sqrt(hidden) (Cauchy and Schwarz). From there:

- MLP: |silu(gate) up| <= |gate| |up|, then the rows of down_proj.
- Attention: a mean of values, with weights that add up to 1, times sigmoid(gate) <= 1; then o_proj.
- Gated DeltaNet: keys and queries have norm at most 1, decay and write strength at most 1. So a
  column of the state grows by at most the value that is written: |state| <= tokens * |value|. Its
  norm leaves at most sqrt(value_head_dim) times its weight, times |silu(z)|; then out_proj.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from qgpu_isa.qwen35_config import LINEAR

from qgpu_merge.check.open_pair import Pair
from qgpu_merge.qwen35_layout import MIXER_NORM, MLP_NORM
from qgpu_merge.read_checkpoint import Checkpoint

TOKENS = 2.0**20
"""Longest sequence that the bound covers."""

LIMIT = 2.0**56
"""Largest reach: squares of it, over all dimensions, are far from fp32's largest number."""

ROUNDING = 1.0 + 2.0**-6
BLOCK_ROWS = 2048


@dataclass(frozen=True)
class BaseReach:
    """What the base's layers can do at most.

    Attributes:
        largest: bound on what they add to an element of the residual stream, all together, and on
            every value in between.
        where: the tensor whose result comes closest to the limit.
    """

    largest: float
    where: str

    @property
    def holds(self) -> bool:
        """Whether all stays finite, for sequences of up to `TOKENS` tokens. False for a NaN."""
        return self.largest < LIMIT


def base_reach(pair: Pair, step: Callable[[], None]) -> BaseReach:
    """Bounds the merged model's base layers; `step` is called after each."""
    kinds = pair.merged.shape.layer_types
    added, found = 0.0, [(0.0, "no layer")]
    for layer in range(pair.gpu_layers, len(kinds)):
        reader = _Layer(pair.merged, f"layers.{layer}.")
        mixer = reader.delta_net() if kinds[layer] == LINEAR else reader.attention()
        added += mixer + reader.mlp()
        found += reader.found
        step()
    found.append((added, "the residual stream"))
    # max() would pass over a NaN.
    bad = [pair for pair in found if not pair[0] < LIMIT]
    return BaseReach(*max(bad or found, key=lambda pair: (pair[0] != pair[0], pair[0])))


class _Layer:
    """One layer's bounds; each method gives the most that a part adds to the residual stream."""

    def __init__(self, checkpoint: Checkpoint, prefix: str) -> None:
        self.checkpoint, self.prefix = checkpoint, prefix
        self.found: list[tuple[float, str]] = []

    def mlp(self) -> float:
        gate = self._behind_norm("mlp.gate_proj.weight", MLP_NORM)
        up = self._behind_norm("mlp.up_proj.weight", MLP_NORM)
        return self._rows("mlp.down_proj.weight", self._note("mlp", gate * up))

    def attention(self) -> float:
        # Queries and keys go into norms of their own, whose gains bound the scores.
        gains = []
        for name in ("q", "k"):
            self._behind_norm(f"self_attn.{name}_proj.weight", MIXER_NORM)
            gains.append((1.0 + self._read(f"self_attn.{name}_norm.weight")).abs())
        self._note("scores of self_attn", len(gains[0]) * gains[0].max() * gains[1].max())
        value = self._behind_norm("self_attn.v_proj.weight", MIXER_NORM)
        output = self.checkpoint.tensor(f"{self.prefix}self_attn.o_proj.weight")
        heads = self.checkpoint.shape.axes
        repeats = output.shape[1] // len(value)
        by_head = value.reshape(-1, heads["head_dim"]).repeat_interleave(repeats, 0)
        return self._rows("self_attn.o_proj.weight", by_head.flatten())

    def delta_net(self) -> float:
        mixed = self._behind_norm("linear_attn.in_proj_qkv.weight", MIXER_NORM)
        taps = self._read("linear_attn.conv1d.weight").abs().flatten(1).sum(1)
        mixed = self._note("linear_attn.conv1d.weight", mixed * taps)
        z = self._behind_norm("linear_attn.in_proj_z.weight", MIXER_NORM)
        self._note("the state of linear_attn", TOKENS * mixed[-len(z) :])
        self._behind_norm("linear_attn.in_proj_a.weight", MIXER_NORM)
        self._behind_norm("linear_attn.in_proj_b.weight", MIXER_NORM)
        weight = self._read("linear_attn.norm.weight").abs()
        normed = weight.repeat(len(z) // len(weight)) * len(weight) ** 0.5
        return self._rows("linear_attn.out_proj.weight", self._note("linear_attn", normed * z))

    def _read(self, stem: str) -> torch.Tensor:
        return self.checkpoint.tensor(self.prefix + stem).double()

    def _behind_norm(self, stem: str, norm: str) -> torch.Tensor:
        """Bound [rows] on the results of a matrix that reads the normalised residual stream."""
        matrix = self.checkpoint.tensor(self.prefix + stem)
        gain = (1.0 + self._read(norm)).abs() * ROUNDING
        blocks = torch.split(matrix, BLOCK_ROWS)
        sizes = [(block.double() * gain).norm(dim=1) for block in blocks]
        return self._note(stem, torch.cat(sizes) * matrix.shape[1] ** 0.5)

    def _rows(self, stem: str, inputs: torch.Tensor) -> float:
        """Bound on the results of a matrix whose inputs are bounded."""
        matrix = self.checkpoint.tensor(self.prefix + stem)
        blocks = torch.split(matrix, BLOCK_ROWS)
        sizes = [(block.double().abs() @ inputs) * ROUNDING for block in blocks]
        return float(self._note(stem, torch.cat(sizes)).max())

    def _note(self, stem: str, bound: torch.Tensor) -> torch.Tensor:
        self.found.append((float(bound.max()), self.prefix + stem))
        return bound
