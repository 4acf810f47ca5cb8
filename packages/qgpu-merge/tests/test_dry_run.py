"""`build --dry-run` says what a build writes, and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from qgpu_merge.cli import main
from safetensors import safe_open


def dry(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["build", "--dry-run", *map(str, arguments)])


def test_sizes_are_those_that_a_build_writes(
    circuit_folder: Path, base_folder: Path, merged_folder: Path
) -> None:
    result = dry("--circuit", circuit_folder, "--base", base_folder, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.output)
    groups = facts["groups"]
    size = count = norms = 0
    for path in merged_folder.glob("*.safetensors"):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118
                tensor = file.get_tensor(name)
                size += tensor.nbytes
                count += 1
                norms += "layernorm" in name or name == "model.norm.weight"
    assert (facts["bytes"], facts["tensors"]) == (size, count)
    assert sum(group["bytes"] for group in groups.values()) == size
    assert sum(group["tensors"] for group in groups.values()) == count
    assert groups["norms"]["tensors"] == norms
    assert facts["machine"]["name"] == "nano"
    rows = groups["text embedding"]["bytes"] + groups["GPU embedding rows"]["bytes"]
    assert rows == 2 * facts["vocab_size"] * facts["hidden_size"]


def test_text_and_that_nothing_is_written(
    tmp_path: Path, circuit_folder: Path, base_folder: Path
) -> None:
    output = tmp_path / "new" / "merged"
    result = dry("--circuit", circuit_folder, "--base", base_folder, "-o", output, "--head", "own")
    assert result.exit_code == 0, result.output
    for part in ("machine 'nano'", "text embedding", "GPU head rows", "base layers", "norms"):
        assert part in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("extra", [("--json",), ()])
def test_what_does_not_fit_is_refused(
    tmp_path: Path, circuit_folder: Path, extra: tuple[str]
) -> None:
    result = dry("--circuit", circuit_folder, "--base", tmp_path, *extra)
    assert result.exit_code == 2
    assert "it has no config.json" in result.output


def test_json_needs_a_dry_run() -> None:
    assert CliRunner().invoke(main, ["build", "--json"]).exit_code == 2


def test_inspect_shows_where_a_merge_came_from(merged_folder: Path) -> None:
    result = CliRunner().invoke(main, ["inspect", str(merged_folder)])
    assert result.exit_code == 0, result.output
    assert "made with     qgpu-isa" in result.output
    for name in ("circuit.json", "circuit.safetensors", "model.safetensors"):
        assert f"made from     {name}, SHA-256 " in result.output
