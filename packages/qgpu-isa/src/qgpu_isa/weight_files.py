"""Which safetensors files a checkpoint folder has, and which tensors are in them.

Only their headers are read. Index and headers have to agree: what loads a checkpoint may go by the
one or by the other.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu_isa.checked_json import Fields, load_object, shown
from qgpu_isa.errors import QgpuError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
SUFFIX = ".safetensors"

LARGEST_HEADER = 100_000_000

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
    "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E5M2FNUZ": 8, "F8_E4M3FNUZ": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
"""Bits of an element of each dtype that safetensors knows."""


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor is.

    Attributes:
        path: the file.
        dtype: by its name in safetensors.
        begin, end: of its bytes in the file.
    """

    path: Path
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.end - self.begin


def indexed_files(folder: Path, error: type[QgpuError]) -> dict[str, str] | None:
    """Which file each tensor is in, by the folder's index; None without one.

    Raises:
        QgpuError: `error`; the index is damaged, or names files that are none of the folder's.
    """
    path = folder / INDEX
    if not path.exists():
        return None
    if (folder / SINGLE).exists():
        raise error(
            f"{folder} has both {SINGLE} and {INDEX}; remove the one that is not the model's"
        )
    entries = Fields(load_object(path, error), str(path), error).inner("weight_map").data
    for name, file in entries.items():
        if not _is_file_name(file):
            raise error(
                f"{path}: {name} is said to be in {shown(file)}; "
                f"that must be the name of a {SUFFIX} file beside the index"
            )
    if not entries:
        raise error(f"{path}: weight_map lists no tensors")
    return dict(entries)


def _is_file_name(file: object) -> bool:
    return (
        isinstance(file, str)
        and file.endswith(SUFFIX)
        and file.isprintable()
        and not {"/", "\\"} & set(file)
    )


def stored_tensors(folder: Path, error: type[QgpuError]) -> dict[str, StoredTensor]:
    """All tensors of a checkpoint folder, by name.

    Raises:
        QgpuError: `error`; files are missing or damaged, or do not agree with the index.
    """
    index = indexed_files(folder, error)
    if index is not None:
        paths = [folder / name for name in sorted(set(index.values()))]
    elif (folder / SINGLE).exists():
        paths = [folder / SINGLE]
    else:
        paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        raise error(f"{folder} has no safetensors files")
    for path in paths:
        if not path.exists():
            raise error(f"{path} is missing: download the model again")
    found: dict[str, StoredTensor] = {}
    for path in paths:
        for name, tensor in read_header(path, error).items():
            if name in found:
                raise error(f"{folder}: {name} is in {found[name].path.name} and in {path.name}")
            if index is not None and index.get(name) != path.name:
                said = f"in {index[name]}" if name in index else "in no file"
                raise error(f"{folder}: {name} is in {path.name}, {INDEX} says {said}")
            found[name] = tensor
    absent = sorted(set(index or ()) - found.keys())
    if absent and index is not None:
        raise error(f"{folder}: {absent[0]} is missing in {index[absent[0]]}, where {INDEX} has it")
    return found


def read_header(path: Path, error: type[QgpuError]) -> dict[str, StoredTensor]:
    """The tensors of a safetensors file, by name.

    Raises:
        QgpuError: `error`; there is no such file, or it is damaged.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, LARGEST_HEADER):
                raise ValueError("its header is longer than the file")
            header = json.loads(file.read(length))
        return _entries(path, header, 8 + length, size)
    except FileNotFoundError:
        raise error(f"{path} is missing") from None
    except RecursionError:
        raise error(f"{path} is damaged or cut short: its header is nested too deeply") from None
    except OSError as reason:
        raise error(f"cannot read {path}: {reason.strerror or reason}") from None
    except ValueError as reason:
        text = str(reason).splitlines()[0]
        raise error(f"{path} is damaged or cut short: {text}") from None


def _entries(path: Path, header: Any, start: int, size: int) -> dict[str, StoredTensor]:
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    header.pop("__metadata__", None)
    found = {name: _entry(path, name, entry, start) for name, entry in header.items()}
    end = start
    for name, tensor in sorted(found.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin != end:
            raise ValueError(f"{name} does not begin where the tensor before it ends")
        end = tensor.end
    if end != size:
        raise ValueError(f"its tensors end at byte {end}, the file at {size}")
    return found


def _entry(path: Path, name: str, entry: Any, start: int) -> StoredTensor:
    if not name.isprintable():
        raise ValueError(f"{name!r} is no name of a tensor")
    try:
        dtype, shape = entry["dtype"], tuple(entry["shape"])
        first, last = entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"its entry of {name} is wrong") from None
    numbers = (*shape, first, last)
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
        raise ValueError(f"its entry of {name} is wrong")
    if not isinstance(dtype, str) or dtype not in BITS:
        raise ValueError(f"{name} is of an unknown dtype {shown(dtype)}")
    if math.prod(shape) * BITS[dtype] != 8 * (last - first):
        raise ValueError(f"{name} is {dtype} {list(shape)} in {last - first} bytes")
    return StoredTensor(path, dtype, shape, start + first, start + last)
