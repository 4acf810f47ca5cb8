"""Proof, from the weights, that the GPU layers add exactly nothing to any text token.

By induction over the GPU layers: where the residual stream is the embedding, the MLP multiplies
every `up` by a silu that is exactly 0 and the DeltaNet layer multiplies every head's output by one
(z), so down_proj and out_proj give exactly 0 and the residual stream stays the embedding, whatever
tokens came before. With in_proj_b muted, text does not write into the state either. `mute_bound`
holds the inequality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from qgpu_merge.check.mute_bound import FINITE, row_bound
from qgpu_merge.check.open_pair import Pair
from qgpu_merge.check.text_bounds import text_bounds
from qgpu_merge.qwen35_layout import MIXER_NORM, MLP_NORM

READERS = {
    "linear_attn.in_proj_z.weight": MIXER_NORM,
    "linear_attn.in_proj_b.weight": MIXER_NORM,
    "mlp.gate_proj.weight": MLP_NORM,
    "linear_attn.in_proj_qkv.weight": MIXER_NORM,
    "linear_attn.in_proj_a.weight": MIXER_NORM,
    "mlp.up_proj.weight": MLP_NORM,
}
"""Matrices that read the residual stream through a norm; all have to stay finite."""

GATED = {
    "linear_attn.in_proj_z.weight": "linear_attn.out_proj.weight",
    "mlp.gate_proj.weight": "mlp.down_proj.weight",
}
"""Gates through silu, and the matrix whose column n reads what row n lets through."""

WRITE_GATE = "linear_attn.in_proj_b.weight"

MAX_PROBLEMS = 5


@dataclass
class ResidualProof:
    """What the bound says about all rows of all GPU layers.

    Attributes:
        rows: rows that were checked.
        muted, zero, unread: of these, why they pass; a row may be several.
        smallest_ratio: of the rows that only the mute makes pass; None if there are none.
        largest_image_value: largest |e_i| of an image embedding for which the proof holds.
        problems: rows that do not pass.
    """

    rows: int = 0
    muted: int = 0
    zero: int = 0
    unread: int = 0
    smallest_ratio: float | None = None
    largest_image_value: float = float("inf")
    problem_count: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return self.problem_count == 0

    def add_problem(self, text: str) -> None:
        """Counts a problem; the first few are kept in words."""
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)


def prove_residual(pair: Pair, step: Callable[[], None]) -> ResidualProof:
    """Checks every gate row of every GPU layer; `step` is called after each layer."""
    proof = ResidualProof()
    bounds = text_bounds(pair)
    if not bounds.mark > 0:
        proof.add_problem(f"a text token has {bounds.mark} at the text gate, not a positive mark")
    for layer in range(pair.gpu_layers):
        for stem, norm in READERS.items():
            read = pair.merged.tensor
            matrix = read(f"layers.{layer}.{stem}")
            bound = row_bound(matrix, read(f"layers.{layer}.{norm}").float(), bounds)
            if not bool((bound.largest < FINITE).all()):
                reach = float(bound.largest.max())
                proof.add_problem(f"layer {layer}, {stem}: a result can reach {reach:.1e}")
            if stem not in GATED and stem != WRITE_GATE:
                continue
            unread = torch.zeros(len(matrix), dtype=torch.bool)
            if stem in GATED:
                unread = ~read(f"layers.{layer}.{GATED[stem]}").any(0)
            zero = bound.zero & (stem in GATED)
            muted = bound.ratio > 1
            _add(proof, f"layer {layer}, {stem}", muted, zero, unread, bound.ratio, bound.image)
        step()
    return proof


def _add(
    proof: ResidualProof,
    where: str,
    muted: torch.Tensor,
    zero: torch.Tensor,
    unread: torch.Tensor,
    ratio: torch.Tensor,
    image: torch.Tensor,
) -> None:
    proof.rows += len(muted)
    proof.muted += int(muted.sum())
    proof.zero += int(zero.sum())
    proof.unread += int(unread.sum())
    by_mute = ~(zero | unread)
    if by_mute.any():
        least = float(ratio[by_mute].min())
        old = proof.smallest_ratio
        proof.smallest_ratio = least if old is None else min(old, least)
    if (~unread).any():
        proof.largest_image_value = min(proof.largest_image_value, float(image[~unread].min()))
    for row in (by_mute & ~muted).nonzero().flatten().tolist():
        proof.add_problem(
            f"{where}, row {row} is not muted on text: ratio {float(ratio[row]):.3g}, needed 1"
        )
