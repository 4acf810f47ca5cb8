"""What a check measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from qgpu_merge.check.base_reach import BaseReach
from qgpu_merge.check.confidence import Estimate
from qgpu_merge.check.residual_proof import ResidualProof


@dataclass(frozen=True)
class ArgmaxAgreement:
    """How often bf16 chooses the token that the original in fp32 chooses.

    Attributes:
        original, merged, merged_fp32_norms: share of tokens.
        worse, better: tokens where only the original's, or only the merged model's choice agrees.
        probability: of so many `worse` by chance.
    """

    original: float
    merged: float
    merged_fp32_norms: float
    worse: int
    better: int
    probability: float


@dataclass(frozen=True)
class TextResult:
    """Logits on text.

    Attributes:
        divergence: KL by name, see COMPARED.
        ratio_plain, ratio_fp32_norms: the merged model's KL in bf16 over the original's.
        gpu_mass: largest probability of all GPU tokens together, merged in bf16.
    """

    divergence: dict[str, Estimate]
    ratio_plain: Estimate
    ratio_fp32_norms: Estimate
    argmax: ArgmaxAgreement
    gpu_mass: float


@dataclass(frozen=True)
class Result:
    """All measurements of one check; `limits.failures` judges them.

    Attributes:
        tokens, sequences: of text.
        text_wins: on how many of `gpu_tokens` GPU tokens a text token wins.
        observed_tokens: text tokens that were taken through the GPU layers.
        deviations: where they came out changed.
        reach: how far the base's layers can move the residual stream on GPU tokens.
        skipped_layers: GPU layers that the measurements on text did not run.
        continuations: how many were compared.
        peak_bytes: of the process; `measuring_peak_bytes` before the original was loaded whole.
        device_peak_bytes: on a CUDA device.
    """

    corpus: str
    tokens: int
    sequences: int
    text: TextResult
    text_wins: int
    gpu_tokens: int
    observed_tokens: int
    deviations: list[str]
    proof: ResidualProof
    reach: BaseReach
    skipped_layers: int
    continuations: int
    continuation_tokens: int
    continuation_differences: list[str]
    measuring_peak_bytes: int
    peak_bytes: int
    device_peak_bytes: int | None
    seconds: float

    @property
    def residual_exact(self) -> bool:
        return not self.deviations and self.proof.holds


def as_json(result: Result, failures: list[str]) -> dict[str, Any]:
    """The result as JSON values; numbers that are not finite become null."""
    proof = result.proof
    data: dict[str, Any] = {}
    estimates = result.text.divergence | {
        "kl_ratio_bf16": result.text.ratio_plain,
        "kl_ratio_bf16_fp32norms": result.text.ratio_fp32_norms,
    }
    for name, estimate in estimates.items():
        data |= {name: estimate.value, f"{name}_ci": estimate.interval()}
    data |= {
        "argmax_agreement": {
            "original_bf16": result.text.argmax.original,
            "merged_bf16": result.text.argmax.merged,
            "merged_bf16_fp32norms": result.text.argmax.merged_fp32_norms,
            "only_original": result.text.argmax.worse,
            "only_merged": result.text.argmax.better,
            "p": result.text.argmax.probability,
        },
        "gpu_token_mass_max": result.text.gpu_mass,
        "text_wins": result.text_wins,
        "gpu_tokens": result.gpu_tokens,
        "residual_exact": result.residual_exact,
        "residual_observed": {"tokens": result.observed_tokens, "exact": not result.deviations},
        "residual_proof": {
            "holds": proof.holds,
            "rows": proof.rows,
            "muted": proof.muted,
            "zero": proof.zero,
            "unread": proof.unread,
            "smallest_ratio": proof.smallest_ratio,
            "largest_image_value": proof.largest_image_value,
        },
        "base_reach": {
            "holds": result.reach.holds,
            "largest": result.reach.largest,
            "where": result.reach.where,
        },
        "skipped_layers": result.skipped_layers,
        "greedy_identical": not result.continuation_differences if result.continuations else None,
        "continuations": result.continuations,
        "continuation_tokens": result.continuation_tokens,
        "peak_bytes": result.peak_bytes,
        "measuring_peak_bytes": result.measuring_peak_bytes,
        "device_peak_bytes": result.device_peak_bytes,
        "seconds": result.seconds,
        "tokens": result.tokens,
        "sequences": result.sequences,
        "corpus": result.corpus,
        "passed": not failures,
        "failures": failures,
    }
    finite: dict[str, Any] = _finite(data)
    return finite


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
