"""SHA-256 and size of every file of a folder, kept in the folder in `qgpu-files.json`.

The hashes say whether the files are those that were written: a download cut short, a swapped
shard and a flipped bit all show. They are no signature: who can change the files can change them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from qgpu_isa.errors import QgpuError

FILES_MANIFEST = "qgpu-files.json"
"""In the folder, beside the files that it lists."""

FILES_FORMAT = 1

UNLISTED = frozenset({FILES_MANIFEST, "README.md", ".gitattributes"})
"""Files that decide nothing about the model, and that people and hubs edit."""

PIECE_BYTES = 4 << 20

BLOCK_BYTES = 64 << 10
_ZEROS = bytes(BLOCK_BYTES)

Progress = Callable[[int], None]
"""Bytes that were read since the last call."""


class FilesError(QgpuError):
    """A file of a folder that is not what was written there.

    Attributes:
        path: the file.
        reason: what is wrong with it.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True)
class FileHash:
    """What identifies the content of a file.

    Attributes:
        size: bytes.
        sha256: in hexadecimal.
    """

    size: int
    sha256: str


class HashingFile:
    """A binary file that is written from front to back and hashed on the way, by a second thread.

    Blocks of zeros are skipped over, so they take no space where the file system has holes. A
    circuit's weights are mostly such blocks.
    """

    def __init__(self, file: IO[bytes], hasher: Executor) -> None:
        self._file, self._hasher = file, hasher
        self._digest = hashlib.sha256()
        self._size = 0
        self._hashing: Future[None] | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Appends and hashes; keeps the data until the next call or the end."""
        view = memoryview(data).cast("B")
        if self._hashing is not None:
            self._hashing.result()
        self._hashing = self._hasher.submit(self._digest.update, view)
        for first in range(0, view.nbytes, BLOCK_BYTES):
            block = view[first : first + BLOCK_BYTES]
            if bytes(block) == _ZEROS[: block.nbytes]:
                self._file.seek(block.nbytes, os.SEEK_CUR)
            else:
                self._file.write(block)
        self._size += view.nbytes

    def end(self) -> FileHash:
        """Ends the file where it was written to, hole or not."""
        self._file.truncate(self._size)
        self._file.flush()
        if self._hashing is not None:
            self._hashing.result()
        return FileHash(self._size, self._digest.hexdigest())


@dataclass
class FolderHashes:
    """Gathers the hashes of a new folder's files, while they are written where that is possible.

    Attributes:
        folder: the folder.
        known: hashes by name, a path below the folder with `/`.
    """

    folder: Path
    known: dict[str, FileHash] = field(default_factory=dict)
    _syncing: list[Future[None]] = field(default_factory=list)
    _syncer: Executor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=1))

    @contextmanager
    def create(self, name: str) -> Iterator[HashingFile]:
        """A new file; its hash is known at the end, its bytes are on disk after `wait`."""
        with (
            (self.folder / name).open("wb") as file,
            ThreadPoolExecutor(max_workers=1) as hasher,
        ):
            hashing = HashingFile(file, hasher)
            yield hashing
            self.known[name] = hashing.end()
            # The next file is written meanwhile.
            self._syncing.append(self._syncer.submit(_sync, os.dup(file.fileno())))

    def wait(self) -> None:
        """Returns when the files that `create` made are on disk.

        Raises:
            OSError: one of them could not be written.
        """
        while self._syncing:
            self._syncing.pop().result()

    def write_manifest(self) -> None:
        """Writes `qgpu-files.json`, the last file; reads those whose hashes are not known yet."""
        names = list_files(self.folder)
        for name in names:
            if name not in self.known:
                self.known[name] = hash_file(self.folder / name)
        files = {
            name: {"size": self.known[name].size, "sha256": self.known[name].sha256}
            for name in names
        }
        text = json.dumps({"format": FILES_FORMAT, "files": files}, indent=2) + "\n"
        (self.folder / FILES_MANIFEST).write_text(text, encoding="utf-8")


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def list_files(folder: Path) -> list[str]:
    """The names of a folder's files, with those of its folders, that a manifest lists.

    Hidden folders, such as those that download clients leave, are not part of it.
    """
    names = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            names.append(Path(parent, name).relative_to(folder).as_posix())
    return sorted(set(names) - UNLISTED)


def hash_file(path: Path, progress: Progress | None = None) -> FileHash:
    """Size and SHA-256 of a file on disk.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    size = 0
    buffer = bytearray(PIECE_BYTES)
    view = memoryview(buffer)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(view[:count])
            size += count
            if progress is not None:
                progress(count)
    return FileHash(size, digest.hexdigest())


def read_files_manifest(folder: Path) -> dict[str, FileHash]:
    """The hashes that the folder's `qgpu-files.json` lists, by name.

    Raises:
        FilesError: there is none, or it is damaged.
    """
    path = folder / FILES_MANIFEST
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FILES_FORMAT:
            raise FilesError(path, f"has format {data['format']!r}, not {FILES_FORMAT}")
        files = {
            str(name): FileHash(int(entry["size"]), str(entry["sha256"]))
            for name, entry in data["files"].items()
        }
    except FileNotFoundError:
        raise FilesError(
            path, "is missing, so the files cannot be checked: build or download them again"
        ) from None
    except OSError as error:
        raise FilesError(path, f"cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise FilesError(path, "is damaged: it lists no files") from None
    for name in files:
        parts = PurePosixPath(name).parts
        if not parts or parts[0] == "/" or ".." in parts or not name.isprintable():
            raise FilesError(path, f"is damaged: {name!r} is no file of the folder")
    return files
