"""Compares what an engine computed with a reference that `make_reference.py` wrote.

Needs nothing but numpy: the engines live in environments of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Forward = Callable[[list[int]], np.ndarray]
"""Token ids to the logits after each, float32 [T, V]."""

Decode = Callable[[list[int], int], list[int]]
"""A prompt's ids and a count to that many ids that the engine writes after it, greedily."""


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Row by row."""
    shifted = logits - logits.max(-1, keepdims=True)
    result: np.ndarray = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return result


def report_text(reference: dict[str, Any], forward: Forward) -> None:
    """Prints how far the log-probabilities of a text are from transformers'."""
    text = reference["text"]
    logits = forward(text["ids"]).astype(np.float64)
    found = np.take_along_axis(log_softmax(logits), np.array(text["ids_of_largest"]), 1)
    exact, bf16 = (np.array(text[f"{name}_logprobs"]) for name in ("fp32", "bf16"))
    choices = logits.argmax(-1).tolist()
    count = len(choices)
    for name, values, chosen in (
        ("transformers bf16", bf16, text["bf16_argmax"]),
        ("this engine", found, choices),
    ):
        distance = np.abs(values - exact)
        same = sum(a == b for a, b in zip(chosen, text["fp32_argmax"], strict=True))
        print(
            f"text, {name} against transformers fp32: log-probabilities differ by "
            f"{distance.mean():.4f} in the mean, {distance.max():.4f} at most; "
            f"{same} of {count} choices are the same"
        )


def report_kernel(
    reference: dict[str, Any], forward: Forward | None, decode: Decode, count: int | None = None
) -> None:
    """Prints how many of a kernel's tokens the engine chooses right, teacher-forced and decoded.

    Args:
        reference: of a kernel with one CTA.
        forward: for teacher forcing, where the engine gives all logits.
        decode: for decoding.
        count: how many tokens to compare, the first ones; all if None.
    """
    kernel = reference["kernel"]
    positions, expected = kernel["positions"][:count], kernel["expected"][:count]
    ids = kernel["ids"][: positions[-1] + 1]
    if forward is not None:
        choices = forward(ids)[positions].argmax(-1).tolist()
        right = sum(a == b for a, b in zip(choices, expected, strict=True))
        print(f"kernel, teacher-forced: {right} of {len(expected)} tokens are right", flush=True)
    written = decode(ids[: positions[0] + 1], len(expected))
    right = next(
        (i for i, (a, b) in enumerate(zip(written, expected, strict=False)) if a != b),
        len(written),
    )
    print(f"kernel, decoded: the first {right} of {len(expected)} tokens are right")
