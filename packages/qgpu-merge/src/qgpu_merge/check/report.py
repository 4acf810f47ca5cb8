"""The result of a check as a table."""

from __future__ import annotations

from qgpu_merge.check import limits
from qgpu_merge.check.base_reach import LIMIT
from qgpu_merge.check.confidence import Estimate
from qgpu_merge.check.result import Result

Row = tuple[str, str, str]


def describe(result: Result, failures: list[str]) -> str:
    """A table of all numbers and their limits, then what is missed."""
    rows = [("", "measured", "limit"), *_text_rows(result), *_exactness_rows(result)]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    lines = [f"{result.tokens} tokens in {result.sequences} sequences: {result.corpus}", ""]
    lines += [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows]
    lines += ["", _layers(result)]
    device = result.device_peak_bytes
    on_device = "" if device is None else f", {device / 2**30:.2f} GiB on the device"
    lines.append(
        f"{result.seconds:.0f} s, {result.measuring_peak_bytes / 2**30:.2f} GiB for measuring, "
        f"{result.peak_bytes / 2**30:.2f} GiB in all{on_device}"
    )
    lines.append("passed: all limits are met" if not failures else "FAILED:")
    return "\n".join(lines + [f"  {failure}" for failure in failures])


def _text_rows(result: Result) -> list[Row]:
    kl, argmax = result.text.divergence, result.text.argmax
    return [
        ("KL(original || merged), fp32", _estimate(kl["kl_fp32"]), f"{limits.KL_FP32:g}"),
        ("KL(original || merged), bf16", _estimate(kl["kl_bf16"]), ""),
        (
            "KL from fp32: original bf16",
            _estimate(kl["kl_bf16_original_vs_fp32"]),
            "",
        ),
        ("  merged bf16", _estimate(kl["kl_bf16_merged_vs_fp32"]), ""),
        ("    over original bf16", _estimate(result.text.ratio_plain), f"{limits.RATIO_BF16:.2f}"),
        ("  merged bf16, norms fp32", _estimate(kl["kl_bf16_merged_fp32norms_vs_fp32"]), ""),
        (
            "    over original bf16",
            _estimate(result.text.ratio_fp32_norms),
            f"{limits.RATIO_BF16_FP32_NORMS:.2f}",
        ),
        ("argmax as in fp32: original bf16", f"{argmax.original:.5f}", ""),
        (
            "  merged bf16",
            f"{argmax.merged:.5f} ({argmax.worse} lost, {argmax.better} won, "
            f"p = {argmax.probability:.2g})",
            f"p >= {limits.SIGN_TEST:g}",
        ),
        ("  merged bf16, norms fp32", f"{argmax.merged_fp32_norms:.5f}", ""),
        ("most probability of GPU tokens", f"{result.text.gpu_mass:.3g}", f"{limits.GPU_MASS:g}"),
    ]


def _exactness_rows(result: Result) -> list[Row]:
    proof = result.proof
    ratio = "no row needs the mute"
    if proof.smallest_ratio is not None:
        ratio = f"smallest ratio {proof.smallest_ratio:.4g}"
    same = "not measured"
    if result.continuations:
        same = "different" if result.continuation_differences else "identical"
        same += f", {result.continuations} continuations of {result.continuation_tokens} tokens"
    changed = "exact" if not result.deviations else "changed"
    return [
        ("GPU layers on text, observed", f"{changed}, {result.observed_tokens} tokens", "exact"),
        (
            "GPU layers on text, all vocabulary",
            f"{'proven' if proof.holds else 'not proven'}, {proof.rows} rows, {ratio}",
            "ratio > 1",
        ),
        ("  holds for image values up to", f"{proof.largest_image_value:.4g}", ""),
        ("greedy continuations, fp32", same, "identical"),
        (
            "base's values on GPU tokens, at most",
            f"{result.reach.largest:.2g} ({result.reach.where})",
            f"{LIMIT:.2g}",
        ),
        ("text wins on GPU tokens", f"{result.text_wins} of {result.gpu_tokens}", "0"),
    ]


def _layers(result: Result) -> str:
    if result.skipped_layers:
        return (
            f"The {result.skipped_layers} GPU layers add exactly nothing to text, so the rows "
            "about text are measured without them; --all-layers runs them."
        )
    return "All layers were run on text."


def _estimate(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.4g}"
    return f"{estimate.value:.4g}  [{estimate.low:.4g}, {estimate.high:.4g}]"
