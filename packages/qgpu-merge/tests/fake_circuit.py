"""A random circuit folder in the format of `qgpu-circuit emit`, for tests.

Its weights compute nothing, but they are muted on text as a compiled circuit's are.
"""

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
HIDDEN = BASE_HIDDEN + 128
HEADS = 2
HEAD_DIM = 16
INTERMEDIATE = 128

RESIDUAL = {
    "anchor": BASE_HIDDEN,
    "one": BASE_HIDDEN + 1,
    "text_gate": BASE_HIDDEN + 3,
    "text_head": BASE_HIDDEN + 4,
    "gpu_head": BASE_HIDDEN + 5,
    "code": BASE_HIDDEN + 6,
}
FIXED = BASE_HIDDEN + 6 + vocabulary(NANO).code_bits
MUTE_GAIN, MUTE_WEIGHT, HEAD_GAIN = 2.0**32, -(2.0**40), 2.0**120


def tensor_shapes(values_per_key: int = 1) -> dict[str, tuple[int, ...]]:
    value_heads = HEADS * values_per_key
    value = value_heads * HEAD_DIM
    qkv = 2 * HEADS * HEAD_DIM + value
    layer = {
        "input_layernorm.weight": (HIDDEN,),
        "linear_attn.in_proj_qkv.weight": (qkv, HIDDEN),
        "linear_attn.in_proj_z.weight": (value, HIDDEN),
        "linear_attn.in_proj_b.weight": (value_heads, HIDDEN),
        "linear_attn.in_proj_a.weight": (value_heads, HIDDEN),
        "linear_attn.conv1d.weight": (qkv, 4),
        "linear_attn.dt_bias": (value_heads,),
        "linear_attn.A_log": (value_heads,),
        "linear_attn.norm.weight": (HEAD_DIM,),
        "linear_attn.out_proj.weight": (HIDDEN, value),
        "post_attention_layernorm.weight": (HIDDEN,),
        "mlp.gate_proj.weight": (INTERMEDIATE, HIDDEN),
        "mlp.up_proj.weight": (INTERMEDIATE, HIDDEN),
        "mlp.down_proj.weight": (HIDDEN, INTERMEDIATE),
    }
    shapes = {"embed_tokens.weight": (vocabulary(NANO).size, HIDDEN), "norm.weight": (HIDDEN,)}
    return shapes | {f"layers.{i}.{name}": s for i in range(LAYERS) for name, s in layer.items()}


def random_tensor(name: str, shape: tuple[int, ...]) -> tuple[torch.Tensor, float]:
    """A tensor, dense, and the value of what it does not list."""
    norm = len(shape) == 1 and shape[0] == HIDDEN
    fill = -1.0 if norm else -60.0 if name.endswith("A_log") else 0.0
    dense = torch.full(shape, fill)
    if name.endswith(("A_log", "in_proj_a.weight")):
        return dense, fill
    if name == "norm.weight":
        dense[RESIDUAL["code"] : FIXED] = 1000.0
        dense[[RESIDUAL["text_head"], RESIDUAL["gpu_head"]]] = HEAD_GAIN
        return dense, fill
    if name == "embed_tokens.weight":
        dense[:, RESIDUAL["code"] : FIXED] = torch.randn(shape[0], FIXED - RESIDUAL["code"]).sign()
        dense[:, RESIDUAL["anchor"]] = 100000.0
        dense[:, [RESIDUAL["one"], RESIDUAL["gpu_head"]]] = 1.0
        return dense, fill
    chosen = torch.rand(shape) < 0.2
    # The circuit writes into the base's dimensions and behind the fixed ones, and reads the code.
    fixed = torch.zeros(HIDDEN, dtype=torch.bool)
    fixed[BASE_HIDDEN:FIXED] = True
    for axis, size in enumerate(shape):
        if size == HIDDEN:
            if axis == 1:
                fixed[RESIDUAL["code"] : FIXED] = False
            chosen &= ~fixed.view([-1 if a == axis else 1 for a in range(len(shape))])
    dense[chosen] = torch.randn(int(chosen.sum()))
    if norm:
        dense[[RESIDUAL["one"], *range(RESIDUAL["code"], FIXED)]] = 1000.0
        dense[RESIDUAL["text_gate"]] = MUTE_GAIN
    if name.endswith(("gate_proj.weight", "in_proj_z.weight", "in_proj_b.weight")):
        dense[:, RESIDUAL["text_gate"]] = MUTE_WEIGHT
    if name.startswith(f"layers.{LAYERS - 1}.mlp"):
        set_marks(name, dense)
    return dense, fill


def set_marks(name: str, dense: torch.Tensor) -> None:
    """The last neuron moves the marks of a GPU token."""
    if name.endswith("down_proj.weight"):
        dense[:, -1] = 0.0
        dense[[RESIDUAL["text_head"], RESIDUAL["gpu_head"]], -1] = -1.0
    else:
        dense[-1, [i for i in range(HIDDEN) if i != RESIDUAL["text_gate"]]] = 0.0
        dense[-1, RESIDUAL["one"]] = 128.0 if "gate" in name else 1 / 128


def write_fake_circuit(folder: Path, *, seed: int = 0, values_per_key: int = 1) -> Path:
    """Random sparse weights on all dimensions but the fixed ones."""
    torch.manual_seed(seed)
    folder.mkdir(parents=True)
    stored: dict[str, torch.Tensor] = {}
    manifest: dict[str, Any] = {}
    for name, shape in tensor_shapes(values_per_key).items():
        dense, fill = random_tensor(name, shape)
        listed = dense != fill
        stored[f"{name}.index"] = listed.nonzero().T.contiguous().to(torch.int32)
        stored[f"{name}.value"] = dense[listed].to(torch.bfloat16)
        manifest[name] = {"shape": list(shape), "fill": fill}
    save_file(stored, folder / "circuit.safetensors")
    data = {
        "format": 2,
        "machine": dataclasses.asdict(NANO),
        "shape": {
            "hidden_size": HIDDEN,
            "intermediate_size": INTERMEDIATE,
            "linear_num_key_heads": HEADS,
            "linear_num_value_heads": HEADS * values_per_key,
            "linear_key_head_dim": HEAD_DIM,
            "linear_value_head_dim": HEAD_DIM,
            "num_layers": LAYERS,
            "base_hidden": BASE_HIDDEN,
            "rms_norm_eps": 1e-6,
        },
        "residual": RESIDUAL,
        "tensors": manifest,
        "memory": {"columns": 32, "rows_per_head": 128, "banks": [[[0, 0]], [[1, 1]]]},
        "digest": "0" * 64,
    }
    (folder / "circuit.json").write_text(json.dumps(data))
    return folder
