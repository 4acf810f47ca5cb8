"""GPU layers add exactly nothing to text: the bound is sound, broken merges are caught."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from qgpu_merge.check.gpu_stream import gpu_stream
from qgpu_merge.check.layer_residual import observe_residual, text_streams
from qgpu_merge.check.mute_bound import row_bound
from qgpu_merge.check.open_pair import Pair, open_pair
from qgpu_merge.check.residual_proof import ResidualProof, prove_residual
from qgpu_merge.check.streamed_model import BF16, FP32, StreamedModel
from qgpu_merge.check.text_bounds import TextBounds

TEXT = torch.arange(320).split(160)

Tensors = dict[str, torch.Tensor]
GATE_ROWS = 2 * (128 + 32 + 2)
"""Two layers of 128 neurons and two heads of 16 values."""


def prove(pair: Pair) -> ResidualProof:
    return prove_residual(pair, lambda: None)


def observe(pair: Pair) -> list[str]:
    model = StreamedModel(pair.merged, torch.device("cpu"))
    gpu = gpu_stream(pair, 0)
    streams = {p: text_streams(model, list(TEXT), gpu, p.dtype) for p in (FP32, BF16)}
    return observe_residual(model, pair.gpu_layers, streams, lambda: None)


@pytest.fixture
def broken(
    tmp_path: Path, base_folder: Path, merged_folder: Path
) -> Callable[[Callable[[Tensors], None]], Pair]:
    helper: Any = sys.modules["edited_merge"]

    def make(change: Callable[[Tensors], None]) -> Pair:
        folder = helper.edit_tensors(merged_folder, tmp_path / "broken", change)
        return open_pair(base_folder, folder)

    return make


def test_muted_layers_are_proven_and_observed(base_folder: Path, merged_folder: Path) -> None:
    pair = open_pair(base_folder, merged_folder)
    proof = prove(pair)
    assert proof.holds
    assert proof.rows == GATE_ROWS
    assert proof.muted == GATE_ROWS
    assert proof.smallest_ratio is not None
    assert proof.smallest_ratio > 1e4
    assert 1.0 < proof.largest_image_value < float("inf")
    assert observe(pair) == []


@pytest.mark.parametrize(
    ("name", "row", "value"),
    [
        ("layers.1.mlp.gate_proj", 5, 0.0),
        ("layers.0.mlp.gate_proj", 127, 2.0**40),
        ("layers.1.linear_attn.in_proj_z", 3, 0.0),
        ("layers.0.linear_attn.in_proj_z", 3, -(2.0**-60)),
    ],
)
def test_a_row_that_is_not_muted_is_caught(
    broken: Callable[[Callable[[Tensors], None]], Pair], name: str, row: int, value: float
) -> None:
    helper: Any = sys.modules["edited_merge"]

    def change(tensors: Tensors) -> None:
        _, layer, stem = name.split(".", 2)
        tensors[f"model.{name}.weight"][row, helper.GATE] = value
        # A row that nothing reads could not be observed.
        out = {"mlp.gate_proj": "mlp.down_proj", "linear_attn.in_proj_z": "linear_attn.out_proj"}
        tensors[f"model.layers.{layer}.{out[stem]}.weight"][70, row] = 1.0

    pair = broken(change)
    proof = prove(pair)
    assert not proof.holds
    assert proof.problem_count == 1
    assert f"layer {name.split('.')[1]}" in proof.problems[0]
    assert f"row {row} is not muted" in proof.problems[0]
    if "gate_proj" in name:
        assert observe(pair)


def test_a_write_gate_that_is_not_muted_is_caught(
    broken: Callable[[Callable[[Tensors], None]], Pair],
) -> None:
    def change(tensors: Tensors) -> None:
        tensors["model.layers.1.linear_attn.in_proj_b.weight"][1] = 0.0

    pair = broken(change)
    proof = prove(pair)
    assert proof.problems == [
        "layer 1, linear_attn.in_proj_b.weight, row 1 is not muted on text: ratio 0, needed 1"
    ]
    assert observe(pair) == []


def test_a_text_token_without_its_mark_is_caught(
    broken: Callable[[Callable[[Tensors], None]], Pair],
) -> None:
    helper: Any = sys.modules["edited_merge"]

    def change(tensors: Tensors) -> None:
        tensors["model.embed_tokens.weight"][319, helper.GATE] = 0.0

    pair = broken(change)
    proof = prove(pair)
    assert proof.problem_count > GATE_ROWS
    assert "text gate" in proof.problems[0]
    assert observe(pair)


def test_a_row_that_nothing_reads_does_not_count(
    broken: Callable[[Callable[[Tensors], None]], Pair],
) -> None:
    helper: Any = sys.modules["edited_merge"]

    def change(tensors: Tensors) -> None:
        tensors["model.layers.0.mlp.gate_proj.weight"][9, helper.GATE] = 0.0
        tensors["model.layers.0.mlp.down_proj.weight"][:, 9] = 0.0

    pair = broken(change)
    proof = prove(pair)
    assert proof.holds
    assert proof.unread >= 1
    assert observe(pair) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2.0**127])
def test_values_that_are_not_finite_are_caught(
    broken: Callable[[Callable[[Tensors], None]], Pair], value: float
) -> None:
    def change(tensors: Tensors) -> None:
        tensors["model.layers.0.mlp.up_proj.weight"][4, 3] = value

    proof = prove(broken(change))
    assert not proof.holds
    assert "a result can reach" in proof.problems[0]


GATE = 5


def random_bounds(rows: torch.Tensor, eps: float) -> TextBounds:
    square = rows.square().mean(1)
    return TextBounds(
        rows.abs().amax(0),
        GATE,
        float(rows[:, GATE].min()),
        float((square.min() + eps) ** 0.5),
        float((square.max() + eps) ** 0.5),
        torch.arange(8) < GATE,
        eps,
    )


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 2**16),
    scale=st.sampled_from([1e-3, 1.0, 50.0]),
    mute=st.integers(60, 100),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_what_the_bound_calls_muted_is_exactly_zero(
    seed: int, scale: float, mute: int, dtype: torch.dtype
) -> None:
    """The arithmetic of a layer, on random embeddings and images, never contradicts the bound."""
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5RMSNorm

    eps = 1e-6
    generator = torch.Generator().manual_seed(seed)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    text = scale * randn(40, 8)
    text[:, GATE:] = 0.0
    text[:, GATE] = 2.0**-70
    text = text.bfloat16().double()
    matrix = randn(30, 8) * 10.0 ** randn(30, 1)
    matrix[:, GATE] = -(2.0**mute) * (randn(30) * 4).exp2()
    matrix[::7] = 0.0
    matrix = matrix.bfloat16()
    norm = randn(8)
    bound = row_bound(matrix, norm, random_bounds(text, eps))
    make: Any = Qwen3_5RMSNorm
    module = make(8, eps=eps)
    module.weight.data = norm.to(dtype)

    def gates(embeddings: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            normalised = module(embeddings.to(dtype))
        return torch.nn.functional.linear(normalised, matrix.to(dtype))

    silent = bound.zero | (bound.ratio > 1)
    results = gates(text)[:, silent]
    assert not torch.nn.functional.silu(results).any()
    assert not results[:, bound.zero[silent]].any()
    assert not results[:, ~bound.zero[silent]].sigmoid().any()
    for row in silent.nonzero().flatten().tolist():
        size = min(float(bound.image[row]), 1e4) * 0.99
        image = torch.zeros(50, 8)
        image[:, :GATE] = size * (2.0 * torch.rand(50, GATE, generator=generator) - 1.0)
        image[:25, :GATE] = size * image[:25, :GATE].sign()
        image[:, GATE] = 2.0**-70
        assert not torch.nn.functional.silu(gates(image)[:, row]).any()
