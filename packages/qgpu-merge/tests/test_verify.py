"""A merged checkpoint lists its files; `inspect --verify` reads them all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from click.testing import CliRunner, Result
from qgpu_isa.verify_files import verify_files
from qgpu_merge.cli import main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_all_files_are_listed(merged_folder: Path) -> None:
    listed = verify_files(merged_folder)
    files = (path for path in merged_folder.rglob("*") if path.is_file())
    names = {path.relative_to(merged_folder).as_posix() for path in files}
    assert names - set(listed) <= {"qgpu-files.json", "README.md"}
    assert len([name for name in listed if name.endswith(".safetensors")]) > 1


def test_inspect_says_that_files_are_right(merged_folder: Path) -> None:
    result = run("inspect", merged_folder, "--verify")
    assert result.exit_code == 0, result.output
    assert "as written" in result.stdout
    facts = json.loads(run("inspect", merged_folder, "--verify", "--json").stdout)
    assert facts["verified"]["files"] == len(verify_files(merged_folder))
    assert "verified" not in json.loads(run("inspect", merged_folder, "--json").stdout)


def test_inspect_names_a_damaged_shard(merged_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(merged_folder, copy)
    shard = sorted(copy.glob("*.safetensors"))[1]
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    assert run("inspect", copy).exit_code == 0
    result = run("inspect", copy, "--verify")
    assert result.exit_code == 2
    assert f"{shard} is damaged" in result.output


def test_a_base_has_no_list(base_folder: Path) -> None:
    result = run("inspect", base_folder, "--verify")
    assert result.exit_code == 2
    assert "qgpu-files.json is missing" in result.output
