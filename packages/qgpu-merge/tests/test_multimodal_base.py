"""Published checkpoints are multimodal: vision stays and works, multi-token prediction is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from qgpu_merge.extract_base import extract_base
from qgpu_merge.inspect_checkpoint import inspect_checkpoint
from qgpu_merge.weights_to_checkpoint import build_checkpoint
from safetensors.torch import load_file, save_file

TEXT = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "tie_word_embeddings": True,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1e7,
        "partial_rotary_factor": 0.25,
        "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    },
}
VISION = {
    "depth": 1,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_heads": 2,
    "out_hidden_size": 64,
    "num_position_embeddings": 16,
    "patch_size": 4,
}
IMAGE = 310


@pytest.fixture(scope="module")
def multimodal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base in the published layout: nested config, vision tower, MTP, two shards, own names."""
    from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

    folder = tmp_path_factory.mktemp("mm") / "base"
    config = Qwen3_5Config(
        text_config=TEXT,
        vision_config=VISION,
        tie_word_embeddings=True,
        image_token_id=IMAGE,
        video_token_id=IMAGE + 1,
        vision_start_token_id=IMAGE + 2,
        vision_end_token_id=IMAGE + 3,
    )
    torch.manual_seed(0)
    model: Any = Qwen3_5ForConditionalGeneration(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.add_(torch.randn_like(parameter))
            elif parameter.dim() == 2:
                parameter.mul_(4.0)
    model.to(torch.bfloat16).save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    tensors["mtp.norm.weight"] = torch.randn(64).to(torch.bfloat16)
    tensors["mtp.fc.weight"] = torch.randn(64, 128).to(torch.bfloat16)
    names = sorted(tensors)
    shards = {
        "model-00001-of-00002.safetensors": names[::2],
        "model-00002-of-00002.safetensors": names[1::2],
    }
    for file, members in shards.items():
        save_file({name: tensors[name] for name in members}, folder / file)
    weight_map = {name: file for file, members in shards.items() for name in members}
    index = json.dumps({"metadata": {}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(index)
    raw = json.loads((folder / "config.json").read_text())
    raw["text_config"]["mtp_num_hidden_layers"] = 1
    (folder / "config.json").write_text(json.dumps(raw))
    (folder / "preprocessor_config.json").write_text("{}")
    return folder


@pytest.fixture(scope="module")
def merged(
    tmp_path_factory: pytest.TempPathFactory, circuit_folder: Path, multimodal: Path
) -> Path:
    folder = tmp_path_factory.mktemp("mm") / "merged"
    plan = build_checkpoint(circuit_folder, multimodal, folder)
    assert plan.dropped == ("mtp.fc.weight", "mtp.norm.weight")
    assert "multi-token prediction is left out" in plan.notices[0]
    return folder


def load(kind: str, folder: Path) -> Any:
    import transformers

    model, info = getattr(transformers, kind).from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not info[what], (what, info[what])
    return model.eval()


def divergence(base: torch.Tensor, merged: torch.Tensor) -> float:
    p = base.double().log_softmax(-1)
    q = merged.double().log_softmax(-1)[..., : p.shape[-1]]
    return float((p.exp() * (p - q)).sum(-1).max())


def test_config_and_files(multimodal: Path, merged: Path) -> None:
    facts = inspect_checkpoint(merged)
    assert facts["model_type"] == "qwen3_5"
    assert facts["vision"]
    assert facts["layers"] == 6
    config = json.loads((merged / "config.json").read_text())
    assert config["architectures"] == ["Qwen3_5ForConditionalGeneration"]
    assert config["image_token_id"] == IMAGE
    assert config["text_config"]["mtp_num_hidden_layers"] == 0
    assert config["vision_config"]["out_hidden_size"] == config["text_config"]["hidden_size"] == 192
    assert config["qgpu"]["provenance"]["dropped"] == ["mtp.fc.weight", "mtp.norm.weight"]
    assert (merged / "preprocessor_config.json").read_text() == "{}"


def test_text_through_both_classes(multimodal: Path, merged: Path) -> None:
    tokens = torch.randint(0, 300, (1, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = load("Qwen3_5ForConditionalGeneration", multimodal)(tokens).logits
        for kind in ("AutoModelForCausalLM", "AutoModelForImageTextToText"):
            assert divergence(expected, load(kind, merged)(tokens).logits) < 1e-5


def test_images_are_seen_as_before_and_mute_the_circuit(multimodal: Path, merged: Path) -> None:
    tokens = torch.randint(0, 300, (1, 16), generator=torch.Generator().manual_seed(2))
    tokens[0, 3] = IMAGE + 2
    tokens[0, 4:8] = IMAGE
    tokens[0, 8] = IMAGE + 3
    grid = torch.tensor([[1, 4, 4]])
    pixels = torch.randn(16, 3 * 2 * 4 * 4, generator=torch.Generator().manual_seed(3))
    kinds = (tokens == IMAGE).int()
    given = {
        "input_ids": tokens,
        "pixel_values": pixels,
        "image_grid_thw": grid,
        "mm_token_type_ids": kinds,
    }
    with torch.no_grad():
        expected = load("Qwen3_5ForConditionalGeneration", multimodal)(**given).logits
        other = load("Qwen3_5ForConditionalGeneration", multimodal)(
            **given | {"pixel_values": -pixels}
        ).logits
        model = load("Qwen3_5ForConditionalGeneration", merged)
        output = model(**given, output_hidden_states=True)
    assert divergence(expected, other) > 1e-3
    assert divergence(expected, output.logits) < 1e-5
    assert torch.equal(output.hidden_states[0], output.hidden_states[2])


def test_extraction_gives_back_every_bit(tmp_path: Path, multimodal: Path, merged: Path) -> None:
    extract_base(merged, tmp_path / "out")
    ours, theirs = {}, {}
    for path in (tmp_path / "out").glob("*.safetensors"):
        ours |= load_file(path)
    for path in multimodal.glob("*.safetensors"):
        theirs |= load_file(path)
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype
        assert torch.equal(ours[name].view(torch.int16), tensor.view(torch.int16)), name
    for name in ("config.json", "preprocessor_config.json"):
        assert (tmp_path / "out" / name).read_bytes() == (multimodal / name).read_bytes()
