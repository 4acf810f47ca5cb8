"""A base that is malformed is one clear line, and nothing is written."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from qgpu_merge.cli import main
from safetensors.torch import load_file, save_file

Tensors = dict[str, torch.Tensor]
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


@pytest.fixture
def base(tmp_path: Path, base_folder: Path) -> Path:
    folder = tmp_path / "base"
    shutil.copytree(base_folder, folder)
    return folder


@pytest.fixture
def refused(tmp_path: Path, circuit_folder: Path, base: Path) -> Callable[..., None]:
    """Builds from `base`, and looks at how it is refused."""

    def check(*parts: str, lines: int = 1) -> None:
        out = tmp_path / "out"
        result = build(circuit_folder, base, out)
        assert result.exit_code == 2, result.output
        assert isinstance(result.exception, SystemExit), result.exception
        text = result.stderr.strip().rsplit("error: ", 1)[-1]
        assert len(text.splitlines()) <= lines, text
        for part in parts:
            assert part in text
        assert not out.exists()
        assert not list(tmp_path.glob("out*"))

    return check


def build(circuit: Path, base: Path, out: Path, *more: str) -> Result:
    arguments = ["build", "--circuit", str(circuit), "--base", str(base), "-o", str(out), *more]
    return CliRunner().invoke(main, arguments)


def set_config(base: Path, **changes: object) -> None:
    path = base / "config.json"
    data = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in data.items() if v is not ...}))


def set_tensors(base: Path, change: Callable[[Tensors], None]) -> None:
    tensors = load_file(base / WEIGHTS)
    change(tensors)
    save_file(tensors, base / WEIGHTS, {"format": "pt"})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hidden_act", "gelu", 'hidden_act is "gelu"; it must be "silu"'),
        ("hidden_act", None, "it must be"),
        ("attn_output_gate", False, "it must be true"),
        ("attention_bias", True, "it must be false"),
        ("attention_bias", 0, "it must be false"),
        ("linear_conv_kernel_dim", 8, "it must be 4"),
        ("hidden_size", 64.0, "hidden_size is 64.0; it must be a whole number"),
        ("hidden_size", "64", 'hidden_size is "64"'),
        ("hidden_size", True, "hidden_size is true"),
        ("hidden_size", ..., "has no hidden_size"),
        ("vocab_size", -1, "vocab_size is -1"),
        ("vocab_size", 10**60, "whole number"),
        ("linear_num_value_heads", 3, "a multiple of linear_num_key_heads"),
        ("num_key_value_heads", 0, "num_key_value_heads is 0"),
        ("layer_types", 5, "layer_types is 5; it must be a list"),
        ("layer_types", ["linear_attention", 3], "layer_types holds 3"),
        ("layer_types", ["full_attention"], "the number of layer_types, 1"),
        ("layer_types", [{}], "layer_types holds {}"),
        ("tie_word_embeddings", "false", 'tie_word_embeddings is "false"'),
        ("rms_norm_eps", math.nan, "rms_norm_eps is NaN"),
        ("rms_norm_eps", "1e-6", "a number above 0"),
        ("partial_rotary_factor", 2.0, "partial_rotary_factor is 2.0"),
        ("rope_parameters", [], "rope_parameters is []; it must be an object"),
        ("rope_parameters", {"rope_theta": math.inf}, "rope_theta"),
        ("rope_parameters", {"partial_rotary_factor": 0.03}, "an even number"),
        ("rope_parameters", {"mrope_section": [1, 2]}, "three whole numbers"),
        ("rope_parameters", {"mrope_section": 5}, "mrope_section is 5"),
        ("quantization_config", {"quant_method": "fp8"}, "quantized weights cannot be merged"),
        ("auto_map", {"AutoModel": "x.Y"}, "code of its own"),
        ("dtype", "int8", 'dtype is "int8"'),
        ("model_type", ["qwen3_5"], "not a Qwen3.5 checkpoint"),
        ("model_type", "qwen3_5", "has no text_config"),
        ("text_config", {"a": 1}, "'qwen3_5_text' has none"),
    ],
)
def test_configs(
    base: Path, refused: Callable[..., None], field: str, value: object, message: str
) -> None:
    set_config(base, **{field: value})
    refused(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 200 + "1" + "}" * 200, "nested too deeply"),
        ("[1]", "holds no JSON object"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "it is no JSON"),
        ("\ufeff{}", "it is no JSON"),
        ("", "it is no JSON"),
    ],
)
def test_files_that_are_no_configs(
    base: Path, refused: Callable[..., None], text: str, message: str
) -> None:
    (base / "config.json").write_text(text)
    refused("config.json", message)


def test_bytes_that_are_no_text(base: Path, refused: Callable[..., None]) -> None:
    (base / "config.json").write_bytes(b"\xff\xfe{}")
    refused("it is no JSON")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("model.embed_tokens.weight", (300, 7)),
        ("model.norm.weight", (5,)),
        ("model.layers.0.input_layernorm.weight", (63,)),
        ("model.layers.1.mlp.down_proj.weight", (9, 100)),
        ("model.layers.0.linear_attn.conv1d.weight", (3, 0, 1)),
        ("model.layers.0.linear_attn.A_log", (1,)),
    ],
)
def test_weights_that_are_not_finite(
    base: Path, refused: Callable[..., None], name: str, at: tuple[int, ...], value: float
) -> None:
    def change(tensors: Tensors) -> None:
        tensors[name][at] = value

    set_tensors(base, change)
    refused(name, f"holds {value:g} at {list(at)}", "must be finite")


def test_weights_that_scaling_takes_out_of_range(base: Path, refused: Callable[..., None]) -> None:
    def change(tensors: Tensors) -> None:
        tensors["model.layers.1.mlp.down_proj.weight"][0, 0] = 3e38

    set_tensors(base, change)
    set_config(base, tie_word_embeddings=False)
    set_tensors(base, lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"].neg()}))
    refused("down_proj.weight, scaled, holds inf at [0, 0]")


def set_index(base: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Two shards and their index, changed."""
    tensors = load_file(base / WEIGHTS)
    (base / WEIGHTS).unlink()
    names = sorted(tensors)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, members in shards.items():
        save_file({name: tensors[name] for name in members}, base / file)
    data: dict[str, Any] = {"weight_map": {n: f for f, found in shards.items() for n in found}}
    changed = edit(data)
    (base / INDEX).write_text(json.dumps(data if changed is None else changed))


NORM = "model.norm.weight"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.update(weight_map=None), "weight_map is null; it must be an object"),
        (lambda d: d.update(weight_map=[]), "weight_map is []"),
        (lambda d: d.clear(), "has no weight_map"),
        (lambda d: [1], "holds no JSON object"),
        (lambda d: d["weight_map"].update({NORM: 3}), "is said to be in 3"),
        (lambda d: d["weight_map"].update({NORM: "/etc/passwd"}), 'in "/etc/passwd"'),
        (lambda d: d["weight_map"].update({NORM: "../x.safetensors"}), "beside the index"),
        (lambda d: d["weight_map"].update({NORM: "x\0.safetensors"}), "beside the index"),
        (lambda d: d["weight_map"].update({NORM: "c.safetensors"}), "c.safetensors is missing"),
        (lambda d: d["weight_map"].update({NORM: "b.safetensors"}), "says in b.safetensors"),
        (lambda d: d["weight_map"].pop(NORM), "says in no file"),
        (lambda d: d["weight_map"].update(more="a.safetensors"), "more is missing"),
    ],
)
def test_indexes(
    base: Path, refused: Callable[..., None], edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    def change(data: dict[str, Any]) -> object:
        found = edit(data)
        return found if isinstance(found, list) else None

    set_index(base, change)
    refused(message)


def test_a_tensor_in_two_shards(base: Path, refused: Callable[..., None]) -> None:
    set_index(base, lambda _: None)
    for name in ("a.safetensors", "b.safetensors"):
        path = base / name
        save_file(load_file(path) | {NORM: torch.zeros(64)}, path)
    refused(f"{NORM} is in ")


def test_an_index_beside_whole_weights(base: Path, refused: Callable[..., None]) -> None:
    whole = (base / WEIGHTS).read_bytes()
    set_index(base, lambda _: None)
    (base / WEIGHTS).write_bytes(whole)
    refused("has both", INDEX)


def header_of(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h[NORM].update(dtype="BF17"), 'unknown dtype "BF17"'),
        (lambda h: h[NORM].update(dtype=["BF16"]), "unknown dtype"),
        (lambda h: h[NORM].update(shape=[32]), "in 128 bytes"),
        (lambda h: h[NORM].update(shape=[-64]), "its entry of model.norm.weight is wrong"),
        (lambda h: h[NORM].update(data_offsets=[0, 128, 3]), "is wrong"),
        (lambda h: h[NORM].update(data_offsets=[0, 128]), "does not begin where"),
        (lambda h: h.update({NORM: 5}), "is wrong"),
        (lambda h: h.pop(NORM), "the file at"),
    ],
)
def test_headers(
    base: Path,
    refused: Callable[..., None],
    change: Callable[[dict[str, Any]], object],
    message: str,
) -> None:
    header_of(base / WEIGHTS, change)
    refused("damaged or cut short", message)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int8, torch.float8_e4m3fn])
def test_weights_in_foreign_dtypes(
    base: Path, refused: Callable[..., None], dtype: torch.dtype
) -> None:
    set_tensors(base, lambda t: t.update({NORM: t[NORM].to(dtype)}))
    refused(NORM, "must be in BF16, F32, F16")


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("tokenizer.json", lambda d: d.update(model=None), "model is null"),
        ("tokenizer.json", lambda d: d["model"].update(vocab=[1]), "vocab is [1]"),
        ("tokenizer.json", lambda d: d["model"]["vocab"].update(a=1.5), "a is 1.5"),
        ("tokenizer.json", lambda d: d.update(added_tokens={}), "added_tokens is {}"),
        ("tokenizer.json", lambda d: d.update(added_tokens=[3]), "entry is 3"),
        ("tokenizer.json", lambda d: d["added_tokens"][0].update(id="7"), 'id is "7"'),
        ("tokenizer_config.json", lambda d: d.update(added_tokens_decoder=[]), "decoder is []"),
    ],
)
def test_tokenizers(
    base: Path,
    refused: Callable[..., None],
    qwen_tokenizer: Any,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    edit: Callable[[dict[str, Any]], object],
    message: str,
) -> None:
    from qgpu_merge import weights_to_checkpoint

    def too_late(*_: object, **__: object) -> None:
        raise AssertionError("the weights are planned before the tokenizer is read")

    monkeypatch.setattr(weights_to_checkpoint, "plan_merge", too_late)
    qwen_tokenizer.write_qwen_tokenizer(base)
    data = json.loads((base / name).read_text())
    edit(data)
    (base / name).write_text(json.dumps(data))
    refused(name, message)


def test_a_file_with_the_name_of_the_record(base: Path, refused: Callable[..., None]) -> None:
    (base / "tensors.json").write_text("{}")
    refused("tensors.json", "rename it")


def test_halves_of_characters_are_kept(tmp_path: Path, circuit_folder: Path, base: Path) -> None:
    (base / "config.json").write_text(
        (base / "config.json").read_text().replace("{", '{"note": "\\ud83d",', 1)
    )
    assert build(circuit_folder, base, tmp_path / "out").exit_code == 0
    assert json.loads((tmp_path / "out" / "config.json").read_text())["note"] == "\ud83d"


def test_fp16_is_not_what_a_merge_is_loaded_in(
    tmp_path: Path, circuit_folder: Path, base: Path
) -> None:
    set_config(base, dtype="float16")
    assert build(circuit_folder, base, tmp_path / "out").exit_code == 0
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == "float32"
