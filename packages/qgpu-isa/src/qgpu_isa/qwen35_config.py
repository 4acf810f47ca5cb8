"""What a Qwen3.5 config has to say, for a merge and for the circuit in it; written down once.

`qgpu-merge build` refuses a base, and the sparse engine a model, that says anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qgpu_isa.checked_json import Fields, shown
from qgpu_isa.errors import QgpuError

TEXT_MODEL_TYPE = "qwen3_5_text"
MULTIMODAL_MODEL_TYPE = "qwen3_5"

LINEAR = "linear_attention"
FULL = "full_attention"

SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
)
"""Whole numbers that every config has."""

MULTIPLES = (
    ("linear_num_value_heads", "linear_num_key_heads"),
    ("num_attention_heads", "num_key_value_heads"),
)
"""The first of each pair is a multiple of the second."""

FIXED: dict[str, object] = {
    "hidden_act": "silu",
    "linear_conv_kernel_dim": 4,
    "attention_bias": False,
    "attn_output_gate": True,
}
"""What circuit and merge rely on, beside the tensors. It is also what a config that leaves it out
means."""

ABSENT = {
    "quantization_config": "quantized weights cannot be merged: take the model in bf16, or "
    "dequantize it and leave this out",
    "auto_map": "the model would run code of its own",
}
"""What must not be there, and why."""

DEFAULTS: dict[str, object] = FIXED | {
    "head_dim": 256,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
"""What transformers assumes for what a config leaves out."""

PARTIAL_ROTARY = 0.25
"""Share of a head's dimensions that turn with the position, where a config leaves it out."""

DTYPES = ("bfloat16", "float32", "float16")


def check_text_config(raw: Mapping[str, Any], where: str, error: type[QgpuError]) -> dict[str, Any]:
    """The text model's part of a config.json, with what it leaves out filled in.

    Args:
        raw: config.json, of a text model or of a multimodal one.
        where: the folder or file, for messages.
        error: what is raised.

    Raises:
        QgpuError: `error`; it is not Qwen3.5's, or says what circuit and merge cannot work with.
    """
    kind = raw.get("model_type")
    if kind not in (TEXT_MODEL_TYPE, MULTIMODAL_MODEL_TYPE):
        raise error(
            f"{where} is not a Qwen3.5 checkpoint: its model_type is {shown(kind)}, "
            f"not '{TEXT_MODEL_TYPE}' or '{MULTIMODAL_MODEL_TYPE}'"
        )
    outer = Fields(dict(raw), f"{where}: the config", error)
    text: dict[str, Any] = dict(raw)
    if kind == MULTIMODAL_MODEL_TYPE:
        text = dict(outer.inner("text_config").data)
        Fields({"model_type": TEXT_MODEL_TYPE} | text, f"{outer.where}: text_config", error).text(
            "model_type", (TEXT_MODEL_TYPE,)
        )
        if "vision_config" in raw:
            outer.inner("vision_config")
        _check_absent(outer)
        tied = outer.flag("tie_word_embeddings", False)
        Fields(text, f"{outer.where}: text_config", error).flag("tie_word_embeddings", False)
        if text.setdefault("tie_word_embeddings", tied) != tied and "tie_word_embeddings" in raw:
            outer.fail("tie_word_embeddings", "what text_config says")
    elif "text_config" in raw:
        raise error(
            f"{outer.where}: there is a text_config; a model of type '{TEXT_MODEL_TYPE}' has none"
        )
    fields = Fields(DEFAULTS | text, outer.where, error)
    _check_absent(fields)
    for name in SIZES:
        fields.integer(name)
    for many, few in MULTIPLES:
        if fields.data[many] % fields.data[few]:
            fields.fail(many, f"a multiple of {few}, which is {fields.data[few]}")
    for name, value in FIXED.items():
        if type(fields.data[name]) is not type(value) or fields.data[name] != value:
            fields.fail(name, f"{shown(value)}, as in Qwen3.5")
    fields.flag("tie_word_embeddings", False)
    fields.number("rms_norm_eps", 0.0, 1.0)
    for name in ("dtype", "torch_dtype"):
        if name in fields:
            fields.text(name, DTYPES)
    _check_rope(fields, fields.integer("head_dim"))
    return dict(fields.data) | {"layer_types": _layer_types(fields)}


def _check_absent(fields: Fields) -> None:
    for name, reason in ABSENT.items():
        if name in fields:
            raise fields.error(f"{fields.where}: there is a {name}; {reason}")


def _layer_types(fields: Fields) -> list[str]:
    count = fields.integer("num_hidden_layers", most=10_000)
    if "layer_types" not in fields:
        every = fields.integer("full_attention_interval", default=4)
        return [FULL if (i + 1) % every == 0 else LINEAR for i in range(count)]
    types = fields.array("layer_types")
    foreign = [kind for kind in types if kind not in (LINEAR, FULL)]
    if foreign:
        raise fields.error(
            f"{fields.where}: layer_types holds {shown(foreign[0])}; a layer of Qwen3.5 is "
            f"'{LINEAR}' or '{FULL}'"
        )
    if len(types) != count:
        fields.fail("num_hidden_layers", f"the number of layer_types, {len(types)}")
    return types


def _check_rope(fields: Fields, head_dim: int) -> None:
    """Positions are the base's own affair, but they have to be ones that a model can have."""
    share = PARTIAL_ROTARY
    sections = [fields]
    sections += [fields.inner(n) for n in ("rope_parameters", "rope_scaling") if n in fields]
    for section in sections:
        if "rope_theta" in section:
            section.number("rope_theta", 0.0)
        if "partial_rotary_factor" in section:
            share = section.number("partial_rotary_factor", 0.0, 1.0)
        if "mrope_section" in section and len(section.integers("mrope_section")) != 3:
            section.fail("mrope_section", "a list of three whole numbers")
        for name in ("rope_type", "type"):
            if section is not fields and name in section:
                section.text(name)
    turned = int(head_dim * share)
    if turned < 2 or turned % 2:
        raise fields.error(
            f"{fields.where}: {shown(share)} of a head's {head_dim} dimensions (head_dim, "
            "partial_rotary_factor) turn with the position; that must be an even number of them"
        )
