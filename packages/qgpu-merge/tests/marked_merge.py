"""A merged checkpoint with marks, whose GPU layers would read text if they were not muted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

GATE = 142
"""Text gate: a dimension that the fake circuit leaves unused and older merges do not take."""

MARK = 2.0**-70
MUTE = -(2.0**100)
GATES = ("mlp.gate_proj", "linear_attn.in_proj_z", "linear_attn.in_proj_b")
READERS = (*GATES, "mlp.up_proj", "linear_attn.in_proj_qkv", "linear_attn.in_proj_a")
NORMS = ("input_layernorm.weight", "post_attention_layernorm.weight")

Tensors = dict[str, torch.Tensor]


def edit_tensors(source: Path, target: Path, change: Callable[[Tensors], None]) -> Path:
    """A copy of a checkpoint, in one file, with changed tensors."""
    target.mkdir()
    tensors: Tensors = {}
    for path in sorted(source.glob("*.safetensors")):
        tensors |= load_file(path)
    change(tensors)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(source / "config.json", target)
    return target


def write_marked_merge(base: Path, merged: Path, target: Path) -> Path:
    """The merged checkpoint with marks, mutes and exact norms in fp32."""
    original = load_file(base / "model.safetensors")
    config = json.loads((merged / "config.json").read_text())
    section = config["qgpu"]
    layers, narrow = section["circuit_layers"], section["base_hidden"]
    generator = torch.Generator().manual_seed(7)

    def change(tensors: Tensors) -> None:
        tensors["model.embed_tokens.weight"][: section["token_offset"], GATE] = MARK
        for layer in range(layers):
            for stem in READERS:
                weight = tensors[f"model.layers.{layer}.{stem}.weight"]
                text = torch.randn(len(weight), narrow, generator=generator)
                weight[:, :narrow] = text.bfloat16()
                if stem in GATES:
                    weight[:, GATE] = MUTE
            for stem in NORMS:
                norm = tensors[f"model.layers.{layer}.{stem}"].float()
                norm[:narrow] = norm[GATE] = 0.0
                tensors[f"model.layers.{layer}.{stem}"] = norm
        _exact_norms(tensors, original, layers, narrow)

    edit_tensors(merged, target, change)
    section["marks"] = {"text_gate": GATE, "text_head": GATE, "gpu_head": GATE}
    (target / "config.json").write_text(json.dumps(config))
    return target


def _exact_norms(tensors: Tensors, original: Tensors, layers: int, narrow: int) -> None:
    """Norms of the base's layers without the rounding to bf16; the shift is the merge's own."""
    for name, weight in original.items():
        if not name.endswith((*NORMS, "model.norm.weight")):
            continue
        parts = name.split(".")
        if parts[1] == "layers":
            parts[2] = str(int(parts[2]) + layers)
        merged = tensors[".".join(parts)].float()
        gain = (narrow / len(merged)) ** 0.5
        gain *= 2.0 ** -round(torch.tensor(gain).log2().item())
        merged[:narrow] = (1.0 + weight.float()) * gain - 1.0
        tensors[".".join(parts)] = merged
