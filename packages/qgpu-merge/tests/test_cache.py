"""Builds that share a cache: killed ones, and several at a time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from qgpu_merge.cli import main
from qgpu_merge.default_inputs import cached_circuit, cached_model

BUILD = [sys.executable, "-m", "qgpu_merge.cli", "build", "--profile", "nano"]

SLOW_BUILD = """
import time
from qgpu_merge import write_checkpoint
def write(hashes, name, tasks, progress):
    (hashes.folder / name).write_bytes(b"half")
    print("writing", flush=True)
    time.sleep(600)
write_checkpoint._write_shard = write
from qgpu_merge.cli import main
main(["build", "--profile", "nano"])
"""


@pytest.fixture
def cache(tmp_path: Path, circuit_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds a circuit and nothing else."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("QGPU_CACHE", str(folder))
    shutil.copytree(circuit_folder, cached_circuit("nano"))
    return folder


def entries(cache: Path) -> dict[str, list[str]]:
    return {f.name: sorted(entry.name for entry in f.iterdir()) for f in cache.iterdir()}


def test_killed_builds_are_removed_by_the_next_one(cache: Path) -> None:
    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW_BUILD],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        return process

    def kill(process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    dead, live = start(), start()
    try:
        kill(dead)
        (cache / "models" / "nano-0123456789ab.partial-999999999").mkdir()
        assert len(entries(cache)["models"]) == 3
        assert CliRunner().invoke(main, ["build", "--profile", "nano"]).exit_code == 0
        target, partial = entries(cache)["models"]
        assert target == cached_model("nano").name
        assert partial.startswith(f"{target}.partial-{live.pid}-")
    finally:
        kill(live)
    assert CliRunner().invoke(main, ["build", "--profile", "nano"]).exit_code == 0
    assert entries(cache)["models"] == [target]


def test_builds_that_run_at_a_time_all_succeed_and_follow_the_umask(cache: Path) -> None:
    processes = [
        subprocess.Popen(
            BUILD, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, umask=0o027
        )
        for _ in range(2)
    ]
    for process in processes:
        output, messages = process.communicate(timeout=300)
        assert process.returncode == 0, messages
        assert output.strip() == str(cached_model("nano"))
    assert {name: len(found) for name, found in entries(cache).items()} == {
        "bases": 1,
        "circuits": 1,
        "models": 1,
    }
    for kind in ("bases", "models"):
        (folder,) = (cache / kind).iterdir()
        assert folder.stat().st_mode & 0o777 == 0o750
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert {file.stat().st_mode & 0o777 for file in files} == {0o640}


def test_inspecting_needs_no_torch(base_folder: Path) -> None:
    code = "import sys; from qgpu_merge.cli import main; main(sys.argv[1:], standalone_mode=False)"
    code += "; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    for arguments in (["inspect", "--help"], ["build", "--help"], ["inspect", str(base_folder)]):
        command = [sys.executable, "-c", code, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
