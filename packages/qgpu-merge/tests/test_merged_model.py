"""The merged checkpoint loads in transformers and leaves text as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from qgpu_isa.machine_config import NANO
from qgpu_isa.vocabulary import vocabulary
from qgpu_merge.errors import MergeError
from qgpu_merge.qwen35_layout import Qwen35Shape, checkpoint_name
from qgpu_merge.read_checkpoint import Checkpoint
from qgpu_merge.read_circuit import Circuit
from qgpu_merge.synthetic_base import SyntheticSizes, write_synthetic_base
from qgpu_merge.weights_to_checkpoint import build_checkpoint
from qgpu_merge.widen_residual import Widening

VOCAB = 320


def load(folder: Path, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM

    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, output_loading_info=True
    )
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not info[kind], (kind, info[kind])
    return model.eval()


def text_tokens(count: int = 40) -> torch.Tensor:
    return torch.randint(0, VOCAB, (1, count), generator=torch.Generator().manual_seed(3))


def divergence(base: torch.Tensor, merged: torch.Tensor) -> float:
    """Largest KL over the positions of the base's distribution to the merged one's."""
    p = base.double().log_softmax(-1)
    q = merged.double().log_softmax(-1)[..., :VOCAB]
    return float((p.exp() * (p - q)).sum(-1).max())


def test_text_is_untouched_in_fp32(base_folder: Path, merged_folder: Path) -> None:
    tokens = text_tokens()
    with torch.no_grad():
        base = load(base_folder, torch.float32)(tokens).logits
        merged = load(merged_folder, torch.float32)(tokens).logits
    assert merged.shape[-1] == VOCAB + vocabulary(NANO).size
    # What is left is the epsilon of the norms, which the new width makes count for more.
    assert divergence(base, merged) < 1e-5
    assert float(merged[..., VOCAB:].max()) < -1e9


def test_text_in_bf16_is_as_close_as_the_base_itself(
    base_folder: Path, merged_folder: Path
) -> None:
    tokens = text_tokens()
    with torch.no_grad():
        exact = load(base_folder, torch.float32)(tokens).logits
        base = load(base_folder, torch.bfloat16)(tokens).logits
        merged = load(merged_folder, torch.bfloat16)(tokens).logits
    assert divergence(exact, merged) < 2 * divergence(exact, base)


def test_circuit_layers_add_exactly_nothing_to_text(merged_folder: Path) -> None:
    model = load(merged_folder, torch.bfloat16)
    with torch.no_grad():
        states = model(text_tokens(), output_hidden_states=True).hidden_states
    assert torch.equal(states[0], states[2])


def test_base_layers_reach_no_logit_of_a_gpu_token(merged_folder: Path) -> None:
    """The base's layers act on GPU tokens, whose logits read only dimensions they cannot write."""
    model = load(merged_folder, torch.bfloat16)
    section = json.loads((merged_folder / "config.json").read_text())["qgpu"]
    tokens = VOCAB + torch.arange(30).view(1, -1) * 11
    seen = []
    hook = model.model.norm.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    with torch.no_grad():
        output = model(tokens, output_hidden_states=True)
    hook.remove()
    before, after = output.hidden_states[section["circuit_layers"]], seen[0]
    base = section["base_hidden"]
    assert torch.equal(before[..., base:], after[..., base:])
    assert not torch.equal(before[..., :base], after[..., :base])
    read = (1 + model.model.norm.weight.float()) != 0
    read &= (model.lm_head.weight[VOCAB:] != 0).any(0)
    assert int(read.nonzero().min()) >= base
    assert int(output.logits.argmax(-1).min()) >= VOCAB
    assert float(output.logits[..., :VOCAB].max()) < -1e9


def test_qgpu_section(merged_folder: Path, circuit_folder: Path) -> None:
    config = json.loads((merged_folder / "config.json").read_text())
    section = config["qgpu"]
    assert section["format"] == 2
    assert section["machine"]["name"] == "nano"
    assert section["token_offset"] == VOCAB
    assert section["circuit_layers"] == 2
    assert section["marks"] == {"text_gate": 67, "text_head": 68, "gpu_head": 69}
    assert section["base_hidden"] == 64
    assert section["memory"]["banks"] == [[[0, 0]], [[1, 1]]]
    assert len(section["provenance"]["inputs"]["circuit.safetensors"]) == 64
    assert config["layer_types"] == ["linear_attention"] * 3 + ["full_attention"]


def test_shards_hold_what_circuit_and_base_hold(
    merged_folder: Path, circuit_folder: Path, base_folder: Path
) -> None:
    assert len(list(merged_folder.glob("model-*.safetensors"))) > 1
    merged, circuit = Checkpoint(merged_folder), Circuit(circuit_folder)
    name = "layers.1.linear_attn.conv1d.weight"
    assert torch.equal(merged.tensor(name), circuit.tensor(name))
    assert merged.tensor(name).shape == (96, 1, 4)
    base = Checkpoint(base_folder).tensor("layers.0.mlp.down_proj.weight")
    scale = merged.raw_config["qgpu"]["residual_scale"]
    assert torch.equal(merged.tensor("layers.2.mlp.down_proj.weight")[:64], scale * base)
    assert not merged.tensor("layers.2.mlp.down_proj.weight")[64:].any()


def test_an_untied_head_is_kept(tmp_path: Path, circuit_folder: Path) -> None:
    base = tmp_path / "base"
    sizes = SyntheticSizes.for_circuit(Circuit(circuit_folder))
    write_synthetic_base(base, sizes, tied=False, seed=5)
    build_checkpoint(circuit_folder, base, tmp_path / "out")
    tokens = text_tokens()
    with torch.no_grad():
        expected = load(base, torch.float32)(tokens).logits
        assert divergence(expected, load(tmp_path / "out", torch.float32)(tokens).logits) < 1e-5


def test_a_wider_mlp_of_the_base_is_kept(tmp_path: Path, circuit_folder: Path) -> None:
    import dataclasses

    sizes = SyntheticSizes.for_circuit(Circuit(circuit_folder))
    base = tmp_path / "base"
    write_synthetic_base(base, dataclasses.replace(sizes, intermediate_size=160))
    plan = build_checkpoint(circuit_folder, base, tmp_path / "out")
    assert plan.config["intermediate_size"] == 160
    tokens = text_tokens()
    with torch.no_grad():
        expected = load(base, torch.float32)(tokens).logits
        assert divergence(expected, load(tmp_path / "out", torch.float32)(tokens).logits) < 1e-5


def test_synthetic_base_depends_on_the_seed_alone(tmp_path: Path) -> None:
    sizes = SyntheticSizes(linear_key_head_dim=16, linear_value_head_dim=16)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_synthetic_base(tmp_path / name, sizes, seed=seed)
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in "abc"]
    assert files[0] == files[1] != files[2]


def test_layout_names_every_tensor_of_transformers(base_folder: Path) -> None:
    model = load(base_folder, torch.float32)
    shape = Qwen35Shape.from_config(Checkpoint(base_folder).config)
    ours = {checkpoint_name(name): shape.size(axes) for name, axes in shape.tensors()}
    assert ours == {name: tuple(t.shape) for name, t in model.state_dict().items()}


@pytest.mark.parametrize(("old", "new"), [(64, 192), (64, 512), (1024, 1152), (2048, 2176)])
def test_gains_stay_near_one(old: int, new: int) -> None:
    widening = Widening(old, new)
    stored = torch.linspace(-3.3, 20.1, old)
    stored[0] = -1.0
    exponents = widening.exponents(stored)
    kept = 1 + widening.norm(stored, exponents)
    assert float(kept[0]) == 0.0
    assert not kept[old:].any()
    assert bool(((kept[1:old].abs() > 0.7) & (kept[1:old].abs() < 1.42)).all())
    whole = kept[:old].double() * 2.0 ** exponents.double()
    assert torch.allclose(whole, (1 + stored.double()) * (old / new) ** 0.5, rtol=1e-6, atol=1e-6)


@given(
    st.integers(1, 2000),
    st.integers(1, 200),
    st.sampled_from([1e-6, 1e-5]),
    st.floats(1e-4, 1e4),
    st.integers(0, 2**32 - 1),
)
def test_a_widened_norm_is_the_same_function(
    old: int, more: int, epsilon: float, size: float, seed: int
) -> None:
    """Epsilon included, in exact arithmetic."""
    widening = Widening(old, old + more, epsilon)
    widening = replace(widening, scale=widening.exact_scale)
    generator = torch.Generator().manual_seed(seed)
    y = torch.randn(old, generator=generator, dtype=torch.float64) * size * epsilon**0.5
    gain = torch.randn(old, generator=generator, dtype=torch.float64)
    expected = y / (y.square().mean() + epsilon).sqrt() * gain
    x = torch.zeros(old + more, dtype=torch.float64)
    x[:old] = y * widening.scale
    x[old] = widening.text_mark
    found = x / (x.square().mean() + epsilon).sqrt()
    found = found[:old] * gain * widening.factor
    assert torch.allclose(found, expected, rtol=1e-9, atol=0)


def test_columns_that_cannot_be_scaled_are_an_error() -> None:
    widening = Widening(4, 8)
    matrix = torch.tensor([[2.0**-126, 1.0, 0.0, -3.0]]).to(torch.bfloat16)
    assert torch.equal(
        widening.behind_norm("x", matrix, torch.tensor([3, -2, 5, 1])),
        torch.tensor([[2.0**-123, 0.25, 0.0, -6.0]]).to(torch.bfloat16),
    )
    with pytest.raises(MergeError, match="too small or too large"):
        widening.behind_norm("x", matrix, torch.tensor([-9, 0, 0, 0]))
