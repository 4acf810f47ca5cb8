"""Streaming layer by layer gives the logits of from_pretrained, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from qgpu_merge.check.run_models import apply_final_norm, choose, run_layers
from qgpu_merge.check.streamed_model import (
    BF16,
    BF16_FP32_NORMS,
    FP32,
    Precision,
    StreamedModel,
)
from qgpu_merge.read_checkpoint import Checkpoint
from qgpu_merge.synthetic_base import SyntheticSizes, write_synthetic_base
from torch.nn.functional import linear

CPU = torch.device("cpu")
LENGTHS = (1, 70, 130)


def reference(folder: Path, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM

    auto: Any = AutoModelForCausalLM
    return auto.from_pretrained(folder, dtype=dtype).eval()


def sequences(vocabulary: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(vocabulary, (n,), generator=generator) for n in LENGTHS]


def streamed(model: StreamedModel, precision: Precision) -> list[torch.Tensor]:
    texts = sequences(model.vocabulary)
    hidden = {precision: [model.embed(ids, precision.dtype) for ids in texts]}
    run_layers(model, hidden, range(model.layers), lambda: None)
    apply_final_norm(model, hidden)
    return hidden[precision]


@pytest.fixture(scope="module")
def untied_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("untied") / "base"
    sizes = SyntheticSizes(linear_key_head_dim=16, linear_value_head_dim=16)
    write_synthetic_base(folder, sizes, tied=False)
    return folder


@pytest.mark.parametrize("precision", [FP32, BF16])
@pytest.mark.parametrize("which", ["base_folder", "untied_folder", "merged_folder"])
def test_logits_are_those_of_from_pretrained(
    request: pytest.FixtureRequest, which: str, precision: Precision
) -> None:
    folder: Path = request.getfixturevalue(which)
    whole = reference(folder, precision.dtype)
    model = StreamedModel(Checkpoint(folder), CPU)
    hidden = streamed(model, precision)
    head = model.head_rows(range(model.vocabulary), {precision.dtype})[precision.dtype]
    for ids, state, choice in zip(
        sequences(model.vocabulary), hidden, choose(model, precision, hidden), strict=True
    ):
        with torch.no_grad():
            expected = whole(ids.view(1, -1)).logits
            without_cache = whole(ids.view(1, -1), use_cache=False).logits
        assert torch.equal(linear(state, head), expected)
        assert torch.equal(without_cache, expected)
        assert torch.equal(choice, expected[0].argmax(-1))


def test_norms_in_fp32_are_those_of_a_loader_that_keeps_them(merged_folder: Path) -> None:
    exact = reference(merged_folder, torch.float32).state_dict()
    whole = reference(merged_folder, torch.bfloat16)
    for name, parameter in whole.named_parameters():
        if name.endswith(("layernorm.weight", "model.norm.weight")):
            parameter.data = exact[name]
    model = StreamedModel(Checkpoint(merged_folder), CPU)
    kept, plain = (streamed(model, precision)[-1] for precision in (BF16_FP32_NORMS, BF16))
    with torch.no_grad():
        expected = whole.model(sequences(model.vocabulary)[-1].view(1, -1)).last_hidden_state
    assert torch.equal(kept, expected)
    assert not torch.equal(plain, expected)


def test_precisions_share_what_they_can(merged_folder: Path) -> None:
    model = StreamedModel(Checkpoint(merged_folder), CPU)
    loaded = model.load_layer(0, [BF16, BF16_FP32_NORMS])
    one, other = loaded[BF16], loaded[BF16_FP32_NORMS]
    assert one.mlp.up_proj.weight.data_ptr() == other.mlp.up_proj.weight.data_ptr()
    assert one.input_layernorm.weight.dtype == torch.bfloat16
    assert other.input_layernorm.weight.dtype == torch.float32
