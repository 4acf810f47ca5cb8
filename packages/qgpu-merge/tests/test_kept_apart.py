"""Outputs that would touch an input are refused before anything is; so are damaged merges."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from qgpu_isa.file_hashes import FolderHashes
from qgpu_merge.cli import main
from qgpu_merge.extract_base import extract_base
from qgpu_merge.weights_to_checkpoint import build_checkpoint
from safetensors.torch import load_file, save_file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def refuses(result: Result, *parts: str) -> None:
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    for part in parts:
        assert part in result.output


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_builds(tmp_path: Path, circuit_folder: Path, base_folder: Path) -> None:
    outer = tmp_path / "outer"
    base, circuit = outer / "base", outer / "circuit"
    shutil.copytree(base_folder, base)
    shutil.copytree(circuit_folder, circuit)
    # A folder that --force would replace.
    (outer / "config.json").write_text("{}")
    (tmp_path / "link").symlink_to(base)
    before = files(outer)

    def build(output: Path) -> Result:
        return run("build", "--circuit", circuit, "--base", base, "-o", output, "--force")

    refuses(build(base / "sub"), "inside the input")
    refuses(build(base / "deep" / "sub"), "inside the input")
    refuses(build(base / ".." / "base"), "also an input")
    refuses(build(tmp_path / "link" / "sub"), "inside the input")
    refuses(build(circuit / "sub"), "inside the input")
    refuses(build(outer), "is inside the output")
    refuses(run("synthesize", "--circuit", circuit, "-o", circuit / "x"), "inside the input")
    assert files(outer) == before


def test_files_that_are_links_out_of_the_base(
    tmp_path: Path, circuit_folder: Path, base_folder: Path
) -> None:
    base, store = tmp_path / "base", tmp_path / "store"
    shutil.copytree(base_folder, store)
    base.mkdir()
    for path in store.iterdir():
        (base / path.name).symlink_to(path)
    before = files(store)
    build = ("build", "--circuit", circuit_folder, "--base", base, "--force", "-o")
    refuses(run(*build, store), "is inside the output")
    assert files(store) == before


def test_extractions(tmp_path: Path, merged_folder: Path) -> None:
    merged = tmp_path / "outer" / "merged"
    shutil.copytree(merged_folder, merged)
    (tmp_path / "outer" / "config.json").write_text("{}")
    (tmp_path / "link").symlink_to(merged / "qgpu-base")
    before = files(merged)
    for output in (merged / "qgpu-base", merged / "new", tmp_path / "link", tmp_path / "outer"):
        refuses(run("extract", merged, "-o", output, "--force"), "choose another place")
    assert files(merged) == before


@pytest.mark.parametrize(
    "name",
    ["config.json", "model-00001-of-00006.safetensors", "qgpu-base/kept.safetensors",
     "qgpu-base/tensors.json", "qgpu-base/config.json"],
)  # fmt: skip
def test_damage_anywhere_is_found_before_extraction(
    tmp_path: Path, merged_folder: Path, name: str
) -> None:
    merged = tmp_path / "merged"
    shutil.copytree(merged_folder, merged)
    path = merged / name
    if not path.exists():
        path = min(merged.glob("model-00001-*"))
    data = bytearray(path.read_bytes())
    # The last digit of a file of text, the last bit of weights.
    at = max(i for i, byte in enumerate(data) if chr(byte).isdigit()) if data[:1] == b"{" else -1
    data[at] ^= 1
    path.write_bytes(data)
    refuses(run("extract", merged, "-o", tmp_path / "out"), path.name)
    assert not (tmp_path / "out").exists()


def test_files_that_no_merge_wrote(tmp_path: Path, merged_folder: Path) -> None:
    merged = tmp_path / "merged"
    shutil.copytree(merged_folder, merged)
    (merged / "qgpu-base" / "evil.json").write_text("{}")
    refuses(run("extract", merged, "-o", tmp_path / "out"), "evil.json is not listed")
    (merged / "qgpu-base" / "evil.json").unlink()
    listed = json.loads((merged / "qgpu-files.json").read_text())
    del listed["files"]["config.json"]
    (merged / "qgpu-files.json").write_text(json.dumps(listed))
    refuses(run("extract", merged, "-o", tmp_path / "out"), "config.json is not listed")


def rewritten(merged: Path, name: str, edit: Callable[[dict[str, Any]], object]) -> None:
    """A JSON file of a merge changed, and the hashes with it."""
    data = json.loads((merged / name).read_text())
    edit(data)
    (merged / name).write_text(json.dumps(data))
    FolderHashes(merged).write_manifest()


def heads(count: int) -> dict[str, int]:
    return dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), count)


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("config.json", lambda d: d["qgpu"].update(residual_scale=3), "a power of two"),
        ("config.json", lambda d: d["qgpu"].update(residual_scale="2"), 'residual_scale is "2"'),
        ("config.json", lambda d: d["qgpu"].pop("residual_scale"), "has no residual_scale"),
        ("config.json", lambda d: d.update(qgpu=[]), "no qgpu section"),
        ("config.json", lambda d: d["qgpu"].update(provenance=[]), "provenance is []"),
        ("config.json", lambda d: d["qgpu"].update(provenance={"versions": 5}), "versions is 5"),
        ("config.json", lambda d: d["qgpu"].update(provenance={"notices": [5]}), "notices is [5]"),
        ("config.json", lambda d: d["qgpu"].update(circuit_layers=9), "does not fit the model"),
        ("config.json", lambda d: d["qgpu"]["machine"].update(lanes="2"), 'lanes is "2"'),
        ("config.json", lambda d: d["qgpu"]["machine"].update(wings=2), "no wings"),
        ("qgpu-base/config.json", lambda d: d.update(hidden_size=768.0), "hidden_size is 768.0"),
        ("qgpu-base/config.json", lambda d: d.update(hidden_size=32), "is not of the model"),
        ("qgpu-base/config.json", lambda d: d.update(head_dim=64), "does not fit the base's"),
        ("qgpu-base/config.json", lambda d: d.update(heads(1)), "does not fit the base's"),
        ("qgpu-base/config.json", lambda d: d.update(heads(4)), "is not of the model"),
        ("qgpu-base/tensors.json", lambda d: d.clear(), "kept.safetensors and tensors.json"),
        ("qgpu-base/tensors.json", lambda d: d.update(a=5), "a is 5"),
        ("qgpu-base/tensors.json", lambda d: d.update(a=["F17", [1]]), "a dtype and a shape"),
        ("qgpu-base/tensors.json", lambda d: d.update(a=["F32", [-1]]), "whole numbers from 0"),
        ("qgpu-base/tensors.json", lambda d: d.update(a=["F32", [1]]), "lacks the base's tensor a"),
        (
            "qgpu-base/tensors.json",
            lambda d: d.update({"model.embed_tokens.weight": ["I8", [320, 64]]}),
            "model.embed_tokens.weight does not fit",
        ),
        (
            "qgpu-base/tensors.json",
            lambda d: d.pop("model.embed_tokens.weight"),
            "has no model.embed_tokens.weight",
        ),
    ],
)
def test_records_that_do_not_fit(
    tmp_path: Path,
    merged_folder: Path,
    name: str,
    edit: Callable[[dict[str, Any]], object],
    message: str,
) -> None:
    merged = tmp_path / "merged"
    shutil.copytree(merged_folder, merged)
    rewritten(merged, name, edit)
    refuses(run("extract", merged, "-o", tmp_path / "out"), message)
    if name == "config.json":
        refuses(run("inspect", merged), message)
    assert not (tmp_path / "out").exists()


def test_what_is_left_out_is_kept_in_any_dtype(
    tmp_path: Path, circuit_folder: Path, base_folder: Path
) -> None:
    base, merged, out = (tmp_path / name for name in ("base", "merged", "out"))
    shutil.copytree(base_folder, base)
    dtypes = (
        torch.int8, torch.uint8, torch.bool, torch.int16, torch.int64, torch.float64,
        torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64,
    )  # fmt: skip
    tensors = load_file(base / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    for dtype in dtypes:
        numbers = torch.randint(0, 2, (3, 5), generator=generator)
        tensors[f"mtp.{str(dtype).removeprefix('torch.')}"] = numbers.to(dtype)
    tensors["mtp.nan"] = torch.tensor([float("nan"), -0.0]).bfloat16()
    tensors["mtp.empty"] = torch.zeros(0, 4)
    tensors["mtp.scalar"] = torch.tensor(3)
    save_file(tensors, base / "model.safetensors", {"format": "pt"})
    build_checkpoint(circuit_folder, base, merged)
    extract_base(merged, out)
    found = load_file(out / "model.safetensors")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        ours, theirs = (t.reshape(-1).view(torch.uint8) for t in (found[name], tensor))
        assert torch.equal(ours, theirs), name
    assert run("inspect", merged, "--verify").exit_code == 0
