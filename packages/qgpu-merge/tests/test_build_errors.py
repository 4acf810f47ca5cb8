"""Wrong inputs give one readable line and leave nothing behind."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from qgpu_isa.errors import OutputError
from qgpu_isa.file_hashes import FolderHashes
from qgpu_merge import write_checkpoint
from qgpu_merge.cli import main
from qgpu_merge.weights_to_checkpoint import build_checkpoint


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def refuses(result: Result, *parts: str) -> None:
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    for part in parts:
        assert part in result.output


def copy(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target)
    return target


def edit(folder: Path, name: str, **changes: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def test_build_and_inspect(tmp_path: Path, circuit_folder: Path, base_folder: Path) -> None:
    out = tmp_path / "merged"
    result = run("build", "--circuit", circuit_folder, "--base", base_folder, "-o", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["merged"]
    facts = json.loads(run("inspect", out, "--json").stdout)
    assert facts["layers"] == 4
    assert facts["qgpu"]["machine"]["name"] == "nano"
    assert facts["dtypes"] == {"BF16": 47, "F32": 9}
    assert "machine 'nano'" in run("inspect", out).stdout
    assert "circuit       none" in run("inspect", base_folder).stdout


def test_existing_output(tmp_path: Path, circuit_folder: Path, base_folder: Path) -> None:
    out = tmp_path / "merged"
    arguments = ("build", "--circuit", circuit_folder, "--base", base_folder, "-o", out)
    out.mkdir()
    refuses(run(*arguments), "exists", "--force")
    (out / "notes.txt").write_text("mine")
    refuses(run(*arguments, "--force"), "not a checkpoint folder")
    assert (out / "notes.txt").exists()
    shutil.rmtree(out)
    out.write_text("mine")
    refuses(run(*arguments, "--force"), "not a folder")
    assert out.read_text() == "mine"
    out.unlink()
    assert run(*arguments).exit_code == 0
    (out / "stale").touch()
    assert run(*arguments, "--force").exit_code == 0
    assert not (out / "stale").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["merged"]


def test_merging_twice(tmp_path: Path, circuit_folder: Path, merged_folder: Path) -> None:
    result = run(
        "build", "--circuit", circuit_folder, "--base", merged_folder, "-o", tmp_path / "x"
    )
    refuses(result, "already merged")
    assert not list(tmp_path.iterdir())


def test_foreign_base(tmp_path: Path, circuit_folder: Path, base_folder: Path) -> None:
    other = edit(copy(base_folder, tmp_path / "b"), "config.json", model_type="llama")
    arguments = ("build", "--circuit", circuit_folder, "-o", tmp_path / "x", "--base")
    refuses(run(*arguments, other), "not a Qwen3.5", "llama")
    refuses(run(*arguments, tmp_path / "nowhere"), "not a checkpoint folder")
    (other / "config.json").write_text("{")
    refuses(run(*arguments, other), "cannot read")
    (other / "config.json").unlink()
    refuses(run(*arguments, other), "config.json")
    assert not (tmp_path / "x").exists()


def test_base_of_another_width(tmp_path: Path, circuit_folder: Path) -> None:
    assert run("synthesize", "-o", tmp_path / "b").exit_code == 0
    result = run(
        "build", "--circuit", circuit_folder, "--base", tmp_path / "b", "-o", tmp_path / "x"
    )
    refuses(result, "does not fit", "linear_key_head_dim is 128 in the base, the circuit needs 16")


def test_base_whose_tensors_do_not_fit_its_config(
    tmp_path: Path, circuit_folder: Path, base_folder: Path
) -> None:
    other = edit(copy(base_folder, tmp_path / "b"), "config.json", vocab_size=321)
    result = run("build", "--circuit", circuit_folder, "--base", other, "-o", tmp_path / "x")
    refuses(result, "model.embed_tokens.weight", "(321, 64)")


@pytest.mark.parametrize("size", [0, 5, 200, 20_000])
def test_truncated_base(tmp_path: Path, circuit_folder: Path, base_folder: Path, size: int) -> None:
    other = copy(base_folder, tmp_path / "b")
    path = other / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    result = run("build", "--circuit", circuit_folder, "--base", other, "-o", tmp_path / "x")
    refuses(result, "damaged or cut short")


def test_wrong_circuits(tmp_path: Path, circuit_folder: Path, base_folder: Path) -> None:
    other = copy(circuit_folder, tmp_path / "c")
    arguments = ("build", "--circuit", other, "--base", base_folder, "-o", tmp_path / "x")
    edit(other, "circuit.json", format=1)
    refuses(run(*arguments), "format 1")
    edit(other, "circuit.json", format=2, digest="1", memory={}, machine={"name": "nano"})
    refuses(run(*arguments), "circuit.json: machine has no lanes")
    shutil.copy(circuit_folder / "circuit.json", other)
    edit(other, "circuit.json", tensors={})
    refuses(run(*arguments), "embed_tokens.weight is missing")
    shutil.copy(circuit_folder / "circuit.json", other)
    path = other / "circuit.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    refuses(run(*arguments), "damaged or cut short")
    path.unlink()
    refuses(run(*arguments), "has no circuit.safetensors")
    refuses(run("build", "--circuit", tmp_path, "--base", base_folder, "-o", tmp_path / "x"))


def test_output_that_is_an_input(tmp_path: Path, circuit_folder: Path, base_folder: Path) -> None:
    arguments = ("build", "--circuit", circuit_folder, "--base", base_folder, "--force", "-o")
    (tmp_path / "link").symlink_to(base_folder)
    refuses(run(*arguments, base_folder), "also an input")
    refuses(run(*arguments, tmp_path / "link"), "also an input")
    assert (base_folder / "model.safetensors").exists()


def test_a_failure_half_way_leaves_nothing(
    tmp_path: Path, circuit_folder: Path, base_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "merged"
    build_checkpoint(circuit_folder, base_folder, out)
    before = (out / "model.safetensors").read_bytes()
    calls = []

    def failing(hashes: FolderHashes, name: str, tasks: object, progress: object) -> None:
        calls.append(name)
        (hashes.folder / name).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write_checkpoint, "_write_shard", failing)
    with pytest.raises(OutputError, match="No space left"):
        build_checkpoint(circuit_folder, base_folder, out, force=True)
    assert calls
    assert [path.name for path in tmp_path.iterdir()] == ["merged"]
    assert (out / "model.safetensors").read_bytes() == before
    with pytest.raises(OutputError):
        build_checkpoint(circuit_folder, base_folder, tmp_path / "fresh")
    assert [path.name for path in tmp_path.iterdir()] == ["merged"]


def test_usage_errors(tmp_path: Path, circuit_folder: Path) -> None:
    refuses(run("build", "--circuit", circuit_folder), "-o is needed")
    refuses(run("build", "--circuit", circuit_folder, "--profile", "nano", "-o", tmp_path / "x"))
    refuses(run("build", "--profile", "huge"), "huge")
    refuses(run("inspect", tmp_path), "config.json")


def test_default_build_uses_the_cache(
    tmp_path: Path, circuit_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qgpu_merge import default_inputs

    monkeypatch.setenv("QGPU_CACHE", str(tmp_path / "cache"))
    shutil.copytree(circuit_folder, default_inputs.cached_circuit("nano"))
    models = default_inputs.cached_model("nano").parent
    older, used, other = (
        models / name for name in ("nano-0123456789ab", "nano-0123456789ac", "small-0123456789ab")
    )
    for folder in (older, used, other):
        folder.mkdir(parents=True)
    for folder in (older, other):
        os.utime(folder, (0, 0))
    first = run("build", "--profile", "nano")
    assert first.exit_code == 0, first.output
    assert not older.exists()
    assert used.exists()
    assert other.exists()
    folder = Path(first.stdout.strip().splitlines()[-1])
    assert folder == default_inputs.cached_model("nano")
    stamp = (folder / "config.json").stat().st_mtime_ns
    second = run("build", "--profile", "nano")
    assert second.stdout.strip() == str(folder)
    assert (folder / "config.json").stat().st_mtime_ns == stamp


def test_a_failing_circuit_compiler_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qgpu_merge import default_inputs

    monkeypatch.setenv("QGPU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(default_inputs.sys, "executable", shutil.which("false"))
    refuses(run("build", "--profile", "nano"), "no circuit for it", "qgpu-circuit emit")
