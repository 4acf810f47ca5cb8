"""Folders of output: whole or not at all, also beside other processes and after kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from qgpu_isa import cache
from qgpu_isa.errors import OutputError
from qgpu_isa.new_folder import FolderKind, check_apart, new_folder

KIND = FolderKind("thing", "thing.json")

WRITER = """
import sys, time
from pathlib import Path
from qgpu_isa.new_folder import FolderKind, new_folder
with new_folder(Path(sys.argv[1]), FolderKind("thing", "thing.json")) as folder:
    (folder / "half").write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


def write(
    target: Path, text: str = "new", *, force: bool = False, shared: bool = False, rival: str = ""
) -> None:
    """Writes a folder; with `rival`, another one has appeared at its place when it is complete."""
    with new_folder(target, KIND, force=force, shared=shared) as folder:
        (folder / "thing.json").write_text(text)
        if rival:
            write(target, rival)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def writer(target: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has half written `target`."""
    command = [sys.executable, "-c", WRITER, str(target)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


def test_what_a_killed_process_left_is_removed_and_what_a_live_one_writes_is_not(
    tmp_path: Path,
) -> None:
    target = tmp_path / "t"
    with writer(target) as dead, writer(target) as live, writer(tmp_path / "other") as foreign:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        foreign.send_signal(signal.SIGKILL)
        foreign.wait()
        assert len(names(tmp_path)) == 3
        write(target)
        (partial,) = (n for n in names(tmp_path) if n.startswith("t.partial-"))
        assert partial.startswith(f"t.partial-{live.pid}-")
        assert (tmp_path / partial / "half").exists()
        assert sum(n.startswith("other.partial-") for n in names(tmp_path)) == 1
        cache.tidy(target)
        assert names(tmp_path) == ["t", partial]


def test_a_folder_that_appears_meanwhile(tmp_path: Path) -> None:
    target = tmp_path / "t"
    write(target, shared=True, rival="early")
    assert (target / "thing.json").read_text() == "early"
    other = tmp_path / "u"
    with pytest.raises(OutputError, match="exists; use --force"):
        write(other, rival="early")
    assert (other / "thing.json").read_text() == "early"
    write(other, "forced", force=True)
    assert (other / "thing.json").read_text() == "forced"
    assert names(tmp_path) == ["t", "u"]


def test_a_folder_that_cannot_be_moved_away_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "t"
    write(target)
    rename = Path.rename

    def busy(self: Path, to: Path) -> Path:
        if self == target:
            raise OSError(16, "Device or resource busy")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", busy)
    with pytest.raises(OutputError, match="busy"):
        write(target, "again", force=True)
    assert (target / "thing.json").read_text() == "new"
    assert names(tmp_path) == ["t"]


def test_only_folders_of_the_kind_are_replaced(tmp_path: Path) -> None:
    file, folder, link = tmp_path / "file", tmp_path / "folder", tmp_path / "link"
    file.write_text("mine")
    folder.mkdir()
    (folder / "notes").write_text("mine")
    link.symlink_to(folder)
    for target, message in ((file, "not a folder"), (folder, "not a thing"), (link, "not a thing")):
        with pytest.raises(OutputError, match=message):
            write(target, force=True)
    for target in (folder, link):
        # --force would be refused too, so it is not named.
        with pytest.raises(OutputError, match="not a thing"):
            write(target)
    with pytest.raises(OutputError, match="not a folder"):
        write(file / "x")
    assert names(tmp_path) == ["file", "folder", "link"]
    assert names(folder) == ["notes"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, real = tmp_path / "link", tmp_path / "real"
    link.symlink_to(real)
    write(link)
    write(link, "again", force=True)
    assert link.is_symlink()
    assert (real / "thing.json").read_text() == "again"
    assert names(tmp_path) == ["link", "real"]


def test_parents_are_made_and_go_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="No space"), new_folder(tmp_path / "a" / "b" / "c", KIND):
        raise OSError(28, "No space left on device")
    assert names(tmp_path) == []
    write(tmp_path / "a" / "b" / "c")
    assert names(tmp_path / "a" / "b") == ["c"]


def test_folders_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with new_folder(tmp_path / "t", KIND) as folder:
            os.close(os.open(folder / "secret", os.O_CREAT, 0o600))
    finally:
        os.umask(before)
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "t" / "secret").stat().st_mode & 0o777 == 0o640


def test_entries_of_other_sources_stay_while_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entry(name: str, hours: float) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        when = time.time() - 3600 * hours
        os.utime(folder, (when, when))
        return folder

    own, used = entry("nano-0123456789ab", 90), entry("nano-111111111111", 2)
    stale, foreign = entry("nano-222222222222", 25), entry("small-222222222222", 90)
    busy = entry("nano-333333333333", 0.5)
    assert cache.find_entry(own)
    assert time.time() - own.stat().st_mtime < 60
    assert not stale.exists()
    assert not cache.find_entry(tmp_path / "nano-444444444444")
    assert all(folder.exists() for folder in (own, used, foreign, busy))
    cache.tidy(own, needed=1 << 60)
    assert not used.exists()
    assert all(folder.exists() for folder in (own, foreign, busy))


def test_outputs_apart_from_inputs(tmp_path: Path) -> None:
    given, other = tmp_path / "a" / "in", tmp_path / "elsewhere"
    given.mkdir(parents=True)
    other.mkdir()
    (other / "file").touch()
    (given / "file").symlink_to(other / "file")
    (tmp_path / "link").symlink_to(given)
    refused = {
        given: "also an input",
        given / "x" / "y": "inside the input",
        tmp_path / "link": "also an input",
        tmp_path / "link" / "x": "inside the input",
        given / ".." / "in": "also an input",
        tmp_path / "a": "is inside the output",
        other: "is inside the output",
    }
    for output, message in refused.items():
        with pytest.raises(OutputError, match=message):
            check_apart(output, [given])
    for output in (tmp_path / "b", tmp_path / "a" / "in2", other / "x"):
        check_apart(output, [given])
    check_apart(tmp_path / "b", [tmp_path / "nowhere"])
