"""The base comes back out of a merged checkpoint as it was, whatever its layout and dtype."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from qgpu_merge.cli import main
from qgpu_merge.merge_plan import HeadChoice
from qgpu_merge.qwen35_layout import HEAD
from qgpu_merge.read_circuit import Circuit
from qgpu_merge.synthetic_base import SyntheticSizes, write_synthetic_base
from qgpu_merge.weights_to_checkpoint import build_checkpoint
from safetensors.torch import load_file, save_file


def run(*arguments: object) -> None:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output


def contents(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for path in folder.glob("*.safetensors"):
        found |= load_file(path)
    return found


def assert_same(folder: Path, other: Path) -> None:
    ours, theirs = contents(folder), contents(other)
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype, name
        assert torch.equal(ours[name].view(torch.uint8), tensor.view(torch.uint8)), name
    assert (folder / "config.json").read_bytes() == (other / "config.json").read_bytes()


@pytest.mark.parametrize("tied", ["tied", "untied", "untie"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float16])
def test_round_trip(tmp_path: Path, circuit_folder: Path, tied: str, dtype: torch.dtype) -> None:
    base, merged, out = (tmp_path / name for name in ("base", "merged", "out"))
    sizes = SyntheticSizes.for_circuit(Circuit(circuit_folder))
    write_synthetic_base(base, sizes, tied=tied != "untied", seed=4)
    path = base / "model.safetensors"
    save_file({name: t.to(dtype) for name, t in load_file(path).items()}, path, {"format": "pt"})
    (base / "preprocessor_config.json").write_text('{"version": "1.0"}')
    head = HeadChoice.OWN if tied == "untie" else HeadChoice.TIED
    build_checkpoint(circuit_folder, base, merged, head=head)
    assert (HEAD in contents(merged)) == (tied != "tied")
    run("extract", merged, "-o", out)
    assert_same(out, base)
    assert (out / "preprocessor_config.json").read_text() == '{"version": "1.0"}'


def test_a_padded_base(tmp_path: Path, circuit_folder: Path) -> None:
    """The circuit's MLP is wider than the base's: refused, or with --pad allowed."""
    import dataclasses

    base, merged = tmp_path / "base", tmp_path / "merged"
    sizes = SyntheticSizes.for_circuit(Circuit(circuit_folder))
    write_synthetic_base(base, dataclasses.replace(sizes, intermediate_size=96))
    build = ("build", "--circuit", circuit_folder, "--base", base, "-o", merged)
    refused = CliRunner().invoke(main, [str(a) for a in build])
    assert refused.exit_code == 2
    assert "192 wide with 128 neurons" in refused.output
    assert "--pad" in refused.output
    assert not merged.exists()
    run(*build, "--pad")
    notices = json.loads((merged / "config.json").read_text())["qgpu"]["provenance"]["notices"]
    assert "padded with zeros" in notices[0]
    run("extract", merged, "-o", tmp_path / "out")
    assert_same(tmp_path / "out", base)


def test_what_cannot_be_extracted(tmp_path: Path, base_folder: Path, merged_folder: Path) -> None:
    def refuses(folder: Path, *parts: str, output: Path = tmp_path / "x") -> None:
        result = CliRunner().invoke(main, ["extract", str(folder), "-o", str(output)])
        assert result.exit_code == 2, result.output
        assert all(part in result.output for part in parts), result.output
        assert not (tmp_path / "x").exists()

    refuses(base_folder, "not a merged checkpoint")
    refuses(tmp_path / "none", "not a checkpoint folder")
    refuses(merged_folder, "also an input", output=merged_folder)
    copy = tmp_path / "copy"
    shutil.copytree(merged_folder, copy)
    kept = copy / "qgpu-base" / "kept.safetensors"
    whole = kept.read_bytes()
    kept.write_bytes(whole[:100])
    refuses(copy, "kept.safetensors is truncated")
    kept.write_bytes(whole)
    (copy / "qgpu-base" / "tensors.json").unlink()
    refuses(copy, "tensors.json is missing")
