"""Foreign, incomplete and damaged checkpoints are refused with a reason."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from qgpu_isa.file_hashes import FolderHashes
from qgpu_isa.machine_config import NANO
from qgpu_isa.vocabulary import vocabulary
from qgpu_run.engines.sparse.engine import load_sparse_engine
from qgpu_run.errors import ModelError
from qgpu_run.load_model import ensure_model, load_model, read_manifest

BANKS = [[[0, 0], [1, 0]], [[0, 1], [1, 1]]]


def config(**changes: Any) -> dict[str, Any]:
    section = {
        "format": 2,
        "machine": dataclasses.asdict(NANO),
        "token_offset": 10,
        "memory": {"columns": 32, "rows_per_head": 32, "banks": BANKS},
        "digest": "d",
        "circuit_layers": 3,
        "base_hidden": 4,
        "residual_scale": 2,
        "marks": {"text_gate": 5, "text_head": 6, "gpu_head": 7},
    }
    return {
        "model_type": "qwen3_5_text",
        "architectures": ["Qwen3_5ForCausalLM"],
        "vocab_size": 10 + vocabulary(NANO).size,
        "qgpu": section | changes,
    }


def write(folder: Path, data: Any) -> Path:
    (folder / "config.json").write_text(data if isinstance(data, str) else json.dumps(data))
    return folder


def test_a_manifest_is_read(tmp_path: Path) -> None:
    manifest = read_manifest(write(tmp_path, config()))
    assert manifest.config == NANO
    assert manifest.token_offset == 10
    assert (manifest.circuit_layers, manifest.text_gate) == (3, 5)
    nested = config()
    nested["text_config"] = {"vocab_size": nested.pop("vocab_size")}
    assert read_manifest(write(tmp_path, nested)) == manifest


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", "cannot read"),
        ("[]", "holds no JSON object"),
        ({"model_type": "llama"}, "qgpu-merge build"),
        (config(format=9), "format 9"),
        (config(machine={"name": "x"}), "qgpu section"),
        (config(machine=dataclasses.asdict(NANO) | {"lanes": 3}), "power of two"),
        (config(memory={"columns": 32, "rows_per_head": 32, "banks": [[]]}), "1 memory banks"),
        (config(memory={"columns": 32, "rows_per_head": 1, "banks": BANKS}), "too few words"),
        (config(memory={"columns": 32, "rows_per_head": 32}), "no banks"),
        (config(memory={"columns": 32, "rows_per_head": 32, "banks": 5}), "banks is 5"),
        (config(memory={"columns": 32, "rows_per_head": 32, "banks": [[[9, 0]]]}), "below 3"),
        (
            config(memory={"columns": 32, "rows_per_head": 64, "banks": [[[0, 0]], [[0, 0]]]}),
            "in one head",
        ),
        (config(residual_scale=3), "power of two"),
        (config(circuit_layers=True), "circuit_layers is true"),
        ("[" * 100_000, "nested too deeply"),
        (config(token_offset=11), "build it again"),
        (config(marks={}), "text_gate"),
        (config() | {"text_config": 3}, "build it again"),
    ],
)
def test_wrong_manifests(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_manifest(write(tmp_path, data))


def test_no_checkpoint_at_all(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        read_manifest(tmp_path)
    with pytest.raises(ModelError, match=r"there is no .*nowhere"):
        read_manifest(tmp_path / "nowhere")


def written(folder: Path, weights: bytes) -> Path:
    """A checkpoint folder with a list of its files, whatever they hold."""
    write(folder, config())
    (folder / "model.safetensors").write_bytes(weights)
    FolderHashes(folder).write_manifest()
    return folder


LOADERS = (load_model, load_sparse_engine)


@pytest.mark.parametrize("load", LOADERS)
def test_missing_weights(tmp_path: Path, load: Callable[[Path], object]) -> None:
    (written(tmp_path, b"weights") / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model\.safetensors is missing"):
        load(tmp_path)


@pytest.mark.parametrize("load", LOADERS)
def test_damaged_weights(tmp_path: Path, load: Callable[[Path], object]) -> None:
    (written(tmp_path, b"weights") / "model.safetensors").write_bytes(b"weightz")
    with pytest.raises(ModelError, match=r"model\.safetensors is damaged"):
        load(tmp_path)


@pytest.mark.parametrize("load", LOADERS)
def test_a_checkpoint_without_hashes(tmp_path: Path, load: Callable[[Path], object]) -> None:
    (written(tmp_path, b"weights") / "qgpu-files.json").unlink()
    with pytest.raises(ModelError, match="build or download"):
        load(tmp_path)


@pytest.mark.parametrize("load", LOADERS)
def test_weights_that_were_written_wrong(tmp_path: Path, load: Callable[[Path], object]) -> None:
    with pytest.raises(ModelError, match=r"damaged or incomplete|damaged or cut short"):
        load(written(tmp_path, b"\x10\0\0\0\0\0\0\0{"))


def test_a_failing_build_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from qgpu_run import load_model as module

    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    with pytest.raises(ModelError, match="nano"):
        ensure_model("nano")


def test_the_command_line_refuses_a_foreign_model(invoke, image_files: Path) -> None:
    status, text, _ = invoke("launch", image_files / "scale.qasm", "--model", image_files)
    assert status == 2
    assert "no config.json" in text
