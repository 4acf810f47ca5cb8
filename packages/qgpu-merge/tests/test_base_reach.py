"""What the base's layers can do to GPU tokens is bounded, and the bound is sound."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from qgpu_merge.check.base_reach import LIMIT, BaseReach, base_reach
from qgpu_merge.check.open_pair import Pair, open_pair
from qgpu_merge.check.run_models import run_layers
from qgpu_merge.check.streamed_model import FP32, StreamedModel

Tensors = dict[str, torch.Tensor]


def reach(pair: Pair) -> BaseReach:
    return base_reach(pair, lambda: None)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_no_residual_stream_is_moved_further(
    base_folder: Path, merged_folder: Path, scale: float
) -> None:
    pair = open_pair(base_folder, merged_folder)
    bound = reach(pair)
    assert bound.holds
    model = StreamedModel(pair.merged, torch.device("cpu"))
    generator = torch.Generator().manual_seed(3)
    before = torch.randn(1, 64, pair.merged.shape.axes["hidden"], generator=generator) * scale
    states = {FP32: [before.clone()]}
    run_layers(model, states, range(pair.gpu_layers, model.layers), lambda: None)
    moved = (states[FP32][0] - before).abs().max()
    # A large stream hides what is added to it in its last bits.
    assert 0 < float(moved) < bound.largest + 1e-5 * scale


@pytest.fixture
def changed(
    tmp_path: Path, base_folder: Path, merged_folder: Path
) -> Callable[[str, float], BaseReach]:
    helper: Any = sys.modules["edited_merge"]

    def make(stem: str, factor: float) -> BaseReach:
        def change(tensors: Tensors) -> None:
            first = open_pair(base_folder, merged_folder).gpu_layers
            names = [
                name
                for name in tensors
                if name.endswith(stem) and int(name.partition("layers.")[2].split(".")[0]) >= first
            ]
            assert names
            tensors[names[0]] = tensors[names[0]] * factor

        folder = helper.edit_tensors(merged_folder, tmp_path / "changed", change)
        return reach(open_pair(base_folder, folder))

    return make


@pytest.mark.parametrize(
    "stem",
    [
        "mlp.up_proj.weight",
        "mlp.down_proj.weight",
        "self_attn.v_proj.weight",
        "self_attn.o_proj.weight",
        "self_attn.k_norm.weight",
        "linear_attn.in_proj_qkv.weight",
        "linear_attn.in_proj_a.weight",
        "linear_attn.norm.weight",
        "linear_attn.out_proj.weight",
    ],
)
@pytest.mark.parametrize("factor", [2.0**80, float("nan"), float("inf")])
def test_weights_that_could_overflow_are_found(
    changed: Callable[[str, float], BaseReach], stem: str, factor: float
) -> None:
    found = changed(stem, factor)
    assert not found.holds
    assert not found.largest < LIMIT
