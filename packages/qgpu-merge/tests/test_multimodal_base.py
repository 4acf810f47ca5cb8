"""Published checkpoints are multimodal: the language model is taken out of them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from qgpu_merge.inspect_checkpoint import inspect_checkpoint
from qgpu_merge.weights_to_checkpoint import build_checkpoint
from safetensors.torch import load_file, save_file


def as_multimodal(base: Path, folder: Path) -> Path:
    """The base in the published layout: nested config, other prefix, two shards, more tensors."""
    folder.mkdir()
    text = json.loads((base / "config.json").read_text())
    del text["architectures"]
    tied = text.pop("tie_word_embeddings")
    config = {"model_type": "qwen3_5", "text_config": text, "tie_word_embeddings": tied}
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {
        name.replace("model.", "model.language_model."): tensor
        for name, tensor in load_file(base / "model.safetensors").items()
    }
    tensors["model.visual.patch_embed.weight"] = torch.ones(3)
    tensors["mtp.norm.weight"] = torch.ones(3)
    names = sorted(tensors)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, members in shards.items():
        save_file({name: tensors[name] for name in members}, folder / file)
    weight_map = {name: file for file, members in shards.items() for name in members}
    index = json.dumps({"metadata": {}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(index)
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_the_language_model_is_merged(
    tmp_path: Path, circuit_folder: Path, base_folder: Path, merged_folder: Path
) -> None:
    multimodal = as_multimodal(base_folder, tmp_path / "base")
    facts = inspect_checkpoint(multimodal)
    assert facts["model_type"] == "qwen3_5"
    assert facts["layers"] == 2
    build_checkpoint(circuit_folder, multimodal, tmp_path / "out")
    ours = load_file(tmp_path / "out" / "model.safetensors")
    theirs = {}
    for path in merged_folder.glob("*.safetensors"):
        theirs |= load_file(path)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == ["Qwen3_5ForCausalLM"]
    assert config["model_type"] == "qwen3_5_text"
    assert (tmp_path / "out" / "tokenizer.json").read_text() == "{}"
