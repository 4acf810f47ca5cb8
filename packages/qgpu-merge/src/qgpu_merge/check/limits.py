"""The numbers that a neutral merge has to meet."""

from __future__ import annotations

from qgpu_merge.check.base_reach import LIMIT
from qgpu_merge.check.confidence import Estimate
from qgpu_merge.check.result import Result

KL_FP32 = 1e-5
RATIO_BF16 = 1.10
RATIO_BF16_FP32_NORMS = 1.05
GPU_MASS = 1e-9
SIGN_TEST = 0.025
"""Argmax agreement is worse if chance makes so large a loss less often than this."""


def failures(result: Result) -> list[str]:
    """What is missed, one line each. A NaN misses its limit."""
    found = []

    def at_most(what: str, value: float, limit: float, estimate: Estimate | None = None) -> None:
        if value <= limit:
            return
        found.append(f"{what} is {value:.4g}, the limit is {limit:g}")
        if estimate is not None and estimate.low is not None and estimate.low <= limit:
            found[-1] += (
                f" (but its interval begins at {estimate.low:.4g}: more --tokens would tell)"
            )

    kl = result.text.divergence
    at_most("KL in fp32", kl["kl_fp32"].value, KL_FP32)
    plain, fp32_norms = result.text.ratio_plain, result.text.ratio_fp32_norms
    at_most("ratio of KL from fp32, merged in bf16", plain.value, RATIO_BF16, plain)
    at_most(
        "ratio of KL from fp32, merged in bf16 with norms in fp32",
        fp32_norms.value,
        RATIO_BF16_FP32_NORMS,
        fp32_norms,
    )
    argmax = result.text.argmax
    if not argmax.probability >= SIGN_TEST:
        found.append(
            f"argmax agreement with fp32 is {argmax.merged:.5f}, the original's in bf16 is "
            f"{argmax.original:.5f}: worse than chance explains (p = {argmax.probability:.2g})"
        )
    at_most("largest probability of GPU tokens on text", result.text.gpu_mass, GPU_MASS)
    if result.text_wins:
        found.append(f"a text token wins on {result.text_wins} of {result.gpu_tokens} GPU tokens")
    found += result.deviations
    found += result.proof.problems
    more = result.proof.problem_count - len(result.proof.problems)
    if more > 0:
        found.append(f"the proof fails for {more} more rows")
    if not result.reach.holds:
        found.append(
            f"on GPU tokens {result.reach.where} can reach {result.reach.largest:.1e}, "
            f"the limit is {LIMIT:.1e}"
        )
    found += result.continuation_differences
    return found
