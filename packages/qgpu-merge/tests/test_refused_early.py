"""What cannot work is refused before what takes long, and what is stopped is cleaned up."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from qgpu_merge import default_inputs
from qgpu_merge.cli import main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Path:
        raise AssertionError("a circuit is compiled")

    monkeypatch.setattr(default_inputs, "ensure_circuit", fail)


@pytest.mark.usefixtures("no_compiler")
def test_an_output_that_exists(tmp_path: Path, base_folder: Path, merged_folder: Path) -> None:
    out = tmp_path / "merged"
    shutil.copytree(merged_folder, out)
    result = run("build", "--base", base_folder, "-o", out)
    assert result.exit_code == 2
    assert "exists; use --force" in result.output
    (out / "config.json").unlink()
    for extra in ((), ("--force",)):
        result = run("build", "--base", base_folder, "-o", out, *extra)
        assert result.exit_code == 2
        assert "no config.json" in result.output
        assert "remove it yourself" in result.output


@pytest.mark.usefixtures("no_compiler")
def test_a_base_that_is_merged(tmp_path: Path, merged_folder: Path) -> None:
    result = run("build", "--base", merged_folder, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "already merged with a qgpu circuit" in result.output


def test_a_damaged_file_is_not_measured(
    tmp_path: Path, base_folder: Path, merged_folder: Path
) -> None:
    folder = tmp_path / "merged"
    shutil.copytree(merged_folder, folder)
    (path, *_) = sorted(folder.glob("*.safetensors"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    result = run("check", base_folder, folder, "--tokens", 100)
    assert result.exit_code == 2
    assert "is damaged" in result.output
    (folder / "qgpu-files.json").unlink()
    result = run("check", base_folder, folder, "--tokens", 100, "--continuations", 0)
    assert "are not compared with hashes" in result.output


def test_what_is_terminated_leaves_nothing(
    tmp_path: Path, base_folder: Path, circuit_folder: Path
) -> None:
    script = (
        "import sys, time\n"
        "from qgpu_merge import write_checkpoint, weights_to_checkpoint\n"
        "def slow(*_, **__):\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
        "weights_to_checkpoint.write_tensors = slow\n"
        "from qgpu_merge.cli import main\n"
        "main()\n"
    )
    out = tmp_path / "merged"
    command = [sys.executable, "-c", script, "build", "--circuit", circuit_folder]
    process = subprocess.Popen(
        [*command, "--base", base_folder, "-o", out], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    assert [path.name for path in tmp_path.iterdir()] != []
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert process.wait(30) == 143
    assert time.monotonic() - began < 30
    assert list(tmp_path.iterdir()) == []
