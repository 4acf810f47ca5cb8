"""A random circuit folder in the format of `qgpu-circuit emit`, for tests."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import torch
from qgpu_isa.machine_config import NANO
from qgpu_isa.vocabulary import vocabulary
from safetensors.torch import save_file

LAYERS = 2
BASE_HIDDEN = 64
HIDDEN = 144
HEADS = 2
HEAD_DIM = 16
INTERMEDIATE = 128


def tensor_shapes() -> dict[str, tuple[int, ...]]:
    value = HEADS * HEAD_DIM
    vocab = vocabulary(NANO).size
    layer = {
        "input_layernorm.weight": (HIDDEN,),
        "linear_attn.in_proj_qkv.weight": (3 * value, HIDDEN),
        "linear_attn.in_proj_z.weight": (value, HIDDEN),
        "linear_attn.in_proj_b.weight": (HEADS, HIDDEN),
        "linear_attn.in_proj_a.weight": (HEADS, HIDDEN),
        "linear_attn.conv1d.weight": (3 * value, 4),
        "linear_attn.dt_bias": (HEADS,),
        "linear_attn.A_log": (HEADS,),
        "linear_attn.norm.weight": (HEAD_DIM,),
        "linear_attn.out_proj.weight": (HIDDEN, value),
        "post_attention_layernorm.weight": (HIDDEN,),
        "mlp.gate_proj.weight": (INTERMEDIATE, HIDDEN),
        "mlp.up_proj.weight": (INTERMEDIATE, HIDDEN),
        "mlp.down_proj.weight": (HIDDEN, INTERMEDIATE),
    }
    shapes = {"embed_tokens.weight": (vocab, HIDDEN), "lm_head.weight": (vocab, HIDDEN)}
    shapes["norm.weight"] = (HIDDEN,)
    shapes |= {f"layers.{i}.{name}": s for i in range(LAYERS) for name, s in layer.items()}
    return shapes


def write_fake_circuit(folder: Path, *, spare: int = 2, seed: int = 0) -> Path:
    """Random sparse weights on the circuit dimensions, the last `spare` left unused."""
    torch.manual_seed(seed)
    folder.mkdir(parents=True)
    stored: dict[str, torch.Tensor] = {}
    manifest: dict[str, Any] = {}
    for name, shape in tensor_shapes().items():
        norm = len(shape) == 1 and shape[0] == HIDDEN
        fill = -1.0 if norm else -60.0 if name.endswith("A_log") else 0.0
        dense = torch.full(shape, fill)
        chosen = torch.rand(shape) < 0.2
        for axis, size in enumerate(shape):
            if size == HIDDEN:
                inside = torch.arange(HIDDEN)
                inside = (inside >= BASE_HIDDEN) & (inside < HIDDEN - spare)
                chosen &= inside.view([-1 if a == axis else 1 for a in range(len(shape))])
        if name.endswith("A_log"):
            chosen &= False
        dense[chosen] = torch.randn(int(chosen.sum()))
        index = chosen.nonzero().T.contiguous()
        stored[f"{name}.index"] = index.to(torch.int32)
        stored[f"{name}.value"] = dense[chosen].to(torch.bfloat16)
        manifest[name] = {"shape": list(shape), "fill": fill}
    save_file(stored, folder / "circuit.safetensors")
    data = {
        "format": 1,
        "machine": dataclasses.asdict(NANO),
        "shape": {
            "hidden_size": HIDDEN,
            "intermediate_size": INTERMEDIATE,
            "linear_num_key_heads": HEADS,
            "linear_num_value_heads": HEADS,
            "linear_key_head_dim": HEAD_DIM,
            "linear_value_head_dim": HEAD_DIM,
            "num_layers": LAYERS,
            "base_hidden": BASE_HIDDEN,
            "rms_norm_eps": 1e-6,
        },
        "tensors": manifest,
        "memory": {"columns": 32, "rows_per_head": 128, "banks": [[[0, 0]], [[1, 1]]]},
        "digest": "0" * 64,
    }
    (folder / "circuit.json").write_text(json.dumps(data))
    return folder
