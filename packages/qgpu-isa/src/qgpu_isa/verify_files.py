"""Compares a folder's files with the hashes it lists, and remembers the outcome.

Reading gigabytes takes seconds, so a folder that was found right is not read again while the
system says that none of its files changed: a stamp in the cache holds what it said.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock

from qgpu_isa.cache import cache_root, entry_key
from qgpu_isa.file_hashes import (
    FILES_MANIFEST,
    FileHash,
    FilesError,
    Progress,
    hash_file,
    list_files,
    read_files_manifest,
)

THREADS = 4
"""Files that are hashed at a time; hashing does not hold Python's lock."""

SETTLED_NS = 100_000_000
"""A file younger than this may change again within one tick of the file system's clock."""

ACTIVE_SUFFIXES = (".safetensors", ".safetensors.index.json")
ACTIVE_NAMES = frozenset({"adapter_config.json"})
"""Files that transformers would load in place of the listed ones or beside them."""

Start = Callable[[int], Progress]
"""Called with the bytes that will be read; returns the callback for those that were."""


def verify_files(folder: Path, start: Start | None = None) -> dict[str, FileHash]:
    """Reads every file that the folder lists and compares; returns what it lists.

    Args:
        folder: a folder with `qgpu-files.json`.
        start: for progress.

    Raises:
        FilesError: names the first file, by name, that is missing, truncated, damaged or swapped,
            or that is not listed but would be loaded.
    """
    listed = read_files_manifest(folder)
    _check_sizes(folder, listed)
    _check_unlisted(folder, listed)
    add = start(sum(entry.size for entry in listed.values())) if start else lambda _: None
    lock, stop = Lock(), Event()

    def progress(count: int) -> None:
        if stop.is_set():
            raise InterruptedError
        with lock:
            add(count)

    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        hashing = {name: pool.submit(hash_file, folder / name, progress) for name in listed}
        try:
            for name, future in hashing.items():
                _compare(folder, name, future.result(), listed)
        except OSError as error:
            raise FilesError(folder / name, f"cannot be read: {error.strerror}") from None
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    return listed


def verify_once(folder: Path, start: Start | None = None) -> None:
    """As `verify_files`, but reads no file if none changed since the folder was found right.

    The stamp of a folder is kept in the cache (`$QGPU_CACHE`) below its real path. A cache that
    cannot be written is done without.

    Raises:
        FilesError: as `verify_files`.
    """
    listed = read_files_manifest(folder)
    _check_unlisted(folder, listed)
    place = Path(os.path.realpath(folder))
    stamp = cache_root() / "verified" / entry_key(os.fsencode(place))
    before, settled = _states(place, listed)
    with suppress(OSError):
        if stamp.read_text(encoding="ascii") == before:
            return
    verify_files(folder, start)
    if settled and _states(place, listed)[0] == before:
        _keep(stamp, before)


def _states(folder: Path, listed: Mapping[str, FileHash]) -> tuple[str, bool]:
    """A hash over what the system says of each file, and whether all are older than its clock."""
    states = []
    newest = 0
    for name in (FILES_MANIFEST, *listed):
        path = folder / name
        try:
            found = path.stat()
        except OSError:
            raise FilesError(path, "is missing") from None
        # The time of the last change of a file's entry, which no program can set back, is in too.
        states.append(
            (
                name,
                found.st_dev,
                found.st_ino,
                found.st_size,
                found.st_mtime_ns,
                found.st_ctime_ns,
            )
        )
        newest = max(newest, found.st_mtime_ns, found.st_ctime_ns)
    text = json.dumps([str(folder), states])
    settled = time.time_ns() - newest > SETTLED_NS
    return hashlib.sha256(text.encode()).hexdigest(), settled


def _check_sizes(folder: Path, listed: Mapping[str, FileHash]) -> None:
    for name, entry in listed.items():
        path = folder / name
        try:
            found = path.stat()
        except OSError:
            raise FilesError(path, "is missing: build or download it again") from None
        if not stat.S_ISREG(found.st_mode):
            raise FilesError(path, "is not a file")
        if found.st_size != entry.size:
            word = "truncated" if found.st_size < entry.size else "too long"
            raise FilesError(
                path,
                f"is {word}, or another file: it has {found.st_size} bytes instead of "
                f"{entry.size}; build or download it again",
            )


def _check_unlisted(folder: Path, listed: Mapping[str, FileHash]) -> None:
    for name in list_files(folder):
        active = name.endswith(ACTIVE_SUFFIXES) or name in ACTIVE_NAMES
        if active and name not in listed:
            raise FilesError(
                folder / name,
                f"is not listed in {FILES_MANIFEST}, but may be loaded with the rest: remove it",
            )


def _compare(folder: Path, name: str, found: FileHash, listed: Mapping[str, FileHash]) -> None:
    if found == listed[name]:
        return
    owner = next((other for other, entry in listed.items() if entry == found), None)
    reason = "is damaged" if owner is None else f"was swapped: it holds {owner}"
    raise FilesError(
        folder / name, f"{reason} (its SHA-256 is not the listed one); build or download it again"
    )


def _keep(stamp: Path, text: str) -> None:
    partial = stamp.with_name(f"{stamp.name}.partial-{os.getpid()}")
    try:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="ascii")
        os.replace(partial, stamp)
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
