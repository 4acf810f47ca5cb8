"""A folder of output: written beside its place, and renamed when complete.

The folder that is being written is locked. The lock ends with its process, however that ends, so
what a killed process left is told from what another one is still writing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from qgpu_isa.errors import OutputError
from qgpu_isa.files import follow_umask

_PARTIAL = r"\.partial-(?P<pid>\d+)"
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


@dataclass(frozen=True)
class FolderKind:
    """What a folder holds.

    Attributes:
        name: for people.
        marker: a file that every folder of the kind has; others are never replaced.
    """

    name: str
    marker: str


@contextmanager
def new_folder(
    target: Path, kind: FolderKind, *, force: bool = False, shared: bool = False
) -> Iterator[Path]:
    """A temporary sibling of `target` that takes its place when the block ends without error.

    Missing parents are made, and removed again after an error. A link stays a link: the folder
    it points to is written.

    Args:
        target: the folder to write.
        kind: what it will hold.
        force: whether a folder of the kind that is there is replaced.
        shared: whether one that another process has put there is as good as this one.

    Raises:
        OutputError: the target exists (and is not to be replaced), or cannot be made.
    """
    place = Path(os.path.realpath(target))
    if not shared or force:
        check_place(target, kind, force=force)
    made = _make_parents(place.parent)
    complete = False
    try:
        remove_abandoned(place.parent, place.name)
        partial, lock = _make_partial(place)
        try:
            yield partial
            follow_umask(partial)
            _put(partial, place, target, force=force, shared=shared)
            complete = True
        finally:
            shutil.rmtree(partial, ignore_errors=True)
            os.close(lock)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        if not complete:
            _remove_empty(made)


def check_apart(output: Path, inputs: Iterable[Path]) -> None:
    """That writing a folder can touch no input: neither is in the other, through links either.

    Args:
        output: the folder to write.
        inputs: folders that are read, with the files right in them.

    Raises:
        OutputError: which input is in the way.
    """
    place = Path(os.path.realpath(output))
    for given in inputs:
        folder = Path(os.path.realpath(given))
        if _is_below(place, folder):
            what = "also an input" if _same(place, folder) else f"inside the input {given}"
            raise OutputError(f"the output {output} is {what}; choose another place")
        # Files of a cache are often links to where it keeps them.
        files = list(folder.iterdir()) if folder.is_dir() else []
        for path in (folder, *files):
            if _is_below(Path(os.path.realpath(path)), place):
                raise OutputError(
                    f"the input {path} is inside the output {output}; choose another place"
                )


def _is_below(path: Path, folder: Path) -> bool:
    """Whether a path is a folder or in it; both may be missing."""
    return any(_same(part, folder) for part in (path, *path.parents))


def _same(path: Path, other: Path) -> bool:
    if path == other:
        return True
    # Some file systems have several names for a place.
    with suppress(OSError):
        return path.samefile(other)
    return False


def remove_abandoned(parent: Path, name: str | None = None) -> None:
    """Removes the partial folders in `parent` whose process has ended.

    Args:
        parent: where to look.
        name: only those of this target; None: all, where no one else's folders are.
    """
    pattern = f".*{_PARTIAL}.*" if name is None else f"{re.escape(name)}{_PARTIAL}-[0-9a-f]{{8}}"
    with suppress(OSError):
        for path in parent.iterdir():
            match = re.fullmatch(pattern, path.name)
            if match is None or path.is_symlink() or not path.is_dir():
                continue
            pid = int(match["pid"])
            # This process knows its own folders by their locks; its number may be a dead one's.
            if pid == os.getpid() or not _is_alive(pid):
                _remove_unlocked(path)


def discard(folder: Path) -> None:
    """Removes a folder that others may look for: it is gone at once, not file by file."""
    doomed = _partial_name(folder)
    with suppress(OSError):
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def check_place(target: Path, kind: FolderKind, *, force: bool = False) -> None:
    """That `new_folder` may write there, for a command that takes long before it does.

    Raises:
        OutputError: something is there that is not to be replaced.
    """
    place = Path(os.path.realpath(target))
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        raise OutputError(f"{target} is not a folder, and is never replaced; choose another place")
    if any(place.iterdir()) and not (place / kind.marker).is_file():
        raise OutputError(
            f"{target} is not a {kind.name} folder (it has no {kind.marker}), and is never "
            "replaced; choose another place, or remove it yourself"
        )
    if not force:
        raise OutputError(f"{target} exists; use --force to replace it")


def _make_parents(parent: Path) -> list[Path]:
    """Makes a folder and its parents; returns those that were missing, the innermost first."""
    missing = [path for path in (parent, *parent.parents) if not os.path.lexists(path)]
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise OutputError(f"cannot write to {parent}: it is not a folder") from None
    except OSError as error:
        _remove_empty(missing)
        raise OutputError(f"cannot write to {parent}: {error.strerror}") from None
    return missing


def _remove_empty(folders: list[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _partial_name(place: Path) -> Path:
    return place.with_name(f"{place.name}.partial-{os.getpid()}-{secrets.token_hex(4)}")


def _make_partial(place: Path) -> tuple[Path, int]:
    """An empty folder beside `place` and the descriptor that holds its lock."""
    while True:
        partial = _partial_name(place)
        try:
            partial.mkdir()
        except OSError as error:
            raise OutputError(f"cannot write to {place.parent}: {error.strerror}") from None
        # Until it is locked, another process may take it for a dead one's.
        with suppress(FileNotFoundError):
            lock = os.open(partial, os.O_RDONLY)
            if _take(lock) is not False and partial.is_dir():
                return partial, lock
            os.close(lock)


def _take(descriptor: int) -> bool | None:
    """Locks a folder; False if another has the lock, None where folders cannot be locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _remove_unlocked(path: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        if _take(descriptor):
            shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _put(partial: Path, place: Path, target: Path, *, force: bool, shared: bool) -> None:
    old: list[Path] = []
    while True:
        try:
            partial.rename(place)
            break
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        if not force:
            if shared:
                return
            raise OutputError(f"{target} exists; use --force to replace it")
        # Another process that replaces it may be quicker; then there is a new one in its place.
        with suppress(FileNotFoundError):
            old.append(place.rename(_partial_name(place)))
    for folder in old:
        shutil.rmtree(folder, ignore_errors=True)
