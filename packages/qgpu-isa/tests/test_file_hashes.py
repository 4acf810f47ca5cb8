"""Damaged, truncated, missing and swapped files are found, and named."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from qgpu_isa import verify_files as module
from qgpu_isa.cache import cache_root
from qgpu_isa.file_hashes import (
    FILES_MANIFEST,
    FilesError,
    FolderHashes,
    hash_file,
    read_files_manifest,
)
from qgpu_isa.verify_files import verify_files, verify_once

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QGPU_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "model"
    (folder / "templates").mkdir(parents=True)
    (folder / "templates" / "tool.jinja").write_text("{{ x }}")
    (folder / "config.json").write_text("{}")
    hashes = FolderHashes(folder)
    for name, letter in ((FIRST, b"a"), (SECOND, b"b")):
        with hashes.create(name) as file:
            for piece in range(5):
                file.write(memoryview(letter * (1000 + piece)))
    hashes.write_manifest()
    return folder


def settle(folder: Path) -> None:
    """Waits until the files are older than the clock's tick."""
    time.sleep(1.5 * module.SETTLED_NS / 1e9)


def test_hashes_while_writing_are_those_of_the_files(folder: Path) -> None:
    listed = read_files_manifest(folder)
    assert sorted(listed) == ["config.json", FIRST, SECOND, "templates/tool.jinja"]
    for name, entry in listed.items():
        data = (folder / name).read_bytes()
        assert entry == hash_file(folder / name)
        assert (entry.size, entry.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert verify_files(folder) == listed


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def swap(path: Path) -> None:
    other = path.with_name(SECOND)
    path.rename(path.with_name("x"))
    other.rename(path)
    path.with_name("x").rename(other)


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (flip, "is damaged"),
        (swap, f"was swapped: it holds {SECOND}"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "is truncated"),
        (lambda path: path.write_bytes(b""), "is truncated"),
        (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "is too long"),
        (Path.unlink, "is missing"),
        (become_a_folder, "is not a file"),
    ],
)
def test_a_wrong_file_is_named(folder: Path, damage: Callable[[Path], object], reason: str) -> None:
    settle(folder)
    if reason.startswith("was"):
        # Files of the same size: only their content tells them apart.
        (folder / SECOND).write_bytes(b"c" * (folder / FIRST).stat().st_size)
        FolderHashes(folder).write_manifest()
        settle(folder)
    verify_once(folder)
    damage(folder / FIRST)
    for check in (verify_files, verify_once):
        with pytest.raises(FilesError, match=reason) as caught:
            check(folder)
        assert caught.value.path == folder / FIRST


def test_the_first_wrong_file_is_named(folder: Path) -> None:
    flip(folder / SECOND)
    flip(folder / "config.json")
    with pytest.raises(FilesError) as caught:
        verify_files(folder)
    assert caught.value.path == folder / "config.json"


@pytest.mark.parametrize(
    "name", ["model.safetensors", "model.safetensors.index.json", "adapter_config.json"]
)
def test_a_file_that_would_be_loaded_too_is_refused(folder: Path, name: str) -> None:
    settle(folder)
    verify_once(folder)
    (folder / "notes.txt").write_text("mine")
    (folder / "README.md").write_text("edited")
    (folder / ".cache").mkdir()
    (folder / ".cache" / name).write_text("left by a client")
    verify_once(folder)
    (folder / name).write_text("{}")
    with pytest.raises(FilesError, match="not listed"):
        verify_once(folder)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    calls: list[Path] = []

    def count(path: Path, *rest: object) -> object:
        calls.append(path)
        return hash_file(path)

    monkeypatch.setattr(module, "hash_file", count)
    return calls


def test_unchanged_files_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(folder)
    calls = counted(monkeypatch)
    verify_once(folder)
    assert len(calls) == 4
    link = folder.with_name("link")
    link.symlink_to(folder)
    verify_once(link)
    assert len(calls) == 4


def test_a_change_with_an_old_time_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(folder)
    verify_once(folder)
    times = (folder / FIRST).stat()
    flip(folder / FIRST)
    os.utime(folder / FIRST, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(FilesError, match="damaged"):
        verify_once(folder)


def test_files_that_just_changed_leave_no_stamp(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETTLED_NS", 10**15)
    verify_once(folder)
    assert not (cache_root() / "verified").exists()


def test_a_cache_that_cannot_be_written_is_done_without(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(folder)
    calls = counted(monkeypatch)
    monkeypatch.setenv("QGPU_CACHE", str(folder / "config.json"))
    verify_once(folder)
    verify_once(folder)
    assert len(calls) == 8


def test_progress_counts_all_bytes(folder: Path) -> None:
    sizes, pieces = [], []

    def start(size: int) -> Callable[[int], None]:
        sizes.append(size)
        return pieces.append

    verify_files(folder, start)
    assert sizes == [sum(pieces)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "missing"),
        ("{", "damaged"),
        ("[]", "damaged"),
        (json.dumps({"format": 9, "files": {}}), "format 9"),
        (json.dumps({"format": 1, "files": []}), "damaged"),
        (json.dumps({"format": 1, "files": {"a": {}}}), "damaged"),
        (json.dumps({"format": 1, "files": {"../a": {"size": 1, "sha256": ""}}}), "no file of"),
        ('{"format": 1, "files": {"a\\u0000": {"size": 1, "sha256": ""}}}', "no file of"),
        ('{"format": 1, "files": {"a\\ud83d": {"size": 1, "sha256": ""}}}', "no file of"),
        ('{"format": 1, "files": {"a": {"size": Infinity, "sha256": ""}}}', "damaged"),
        ("[" * 100_000, "damaged"),
    ],
)
def test_wrong_manifests(folder: Path, text: str | None, reason: str) -> None:
    path = folder / FILES_MANIFEST
    path.unlink() if text is None else path.write_text(text)
    for check in (verify_files, verify_once):
        with pytest.raises(FilesError, match=reason):
            check(folder)
