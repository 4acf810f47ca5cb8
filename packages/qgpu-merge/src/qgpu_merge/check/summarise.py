"""Measurements per token become means, intervals and a test."""

from __future__ import annotations

import torch

from qgpu_merge.check.confidence import mean, ratio, sign_test
from qgpu_merge.check.result import ArgmaxAgreement, TextResult
from qgpu_merge.check.run_models import MERGED, ORIGINAL, Comparison, Run
from qgpu_merge.check.streamed_model import BF16, BF16_FP32_NORMS, FP32


def summarise(comparison: Comparison, seed: int) -> TextResult:
    """What the measurements on text say."""
    kl = comparison.divergence
    own = kl["kl_bf16_original_vs_fp32"]
    return TextResult(
        {name: mean(values, seed) for name, values in kl.items()},
        ratio(kl["kl_bf16_merged_vs_fp32"], own, seed),
        ratio(kl["kl_bf16_merged_fp32norms_vs_fp32"], own, seed),
        _argmax(comparison.choice),
        float(torch.cat(comparison.gpu_mass).max()),
    )


def _argmax(choice: dict[Run, list[torch.Tensor]]) -> ArgmaxAgreement:
    together = {run: torch.cat(some) for run, some in choice.items()}
    exact = together[ORIGINAL, FP32]
    original = together[ORIGINAL, BF16] == exact
    merged = together[MERGED, BF16] == exact
    norms = together[MERGED, BF16_FP32_NORMS] == exact
    worse, better = int((original & ~merged).sum()), int((merged & ~original).sum())

    def share(agrees: torch.Tensor) -> float:
        return float(agrees.double().mean())

    return ArgmaxAgreement(
        share(original), share(merged), share(norms), worse, better, sign_test(worse, better)
    )
