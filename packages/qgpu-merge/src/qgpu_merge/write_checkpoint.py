"""The files of a checkpoint folder, written tensor by tensor."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from qgpu_isa.file_hashes import FolderHashes
from qgpu_isa.new_folder import FolderKind
from qgpu_isa.weight_files import INDEX, SINGLE

from qgpu_merge.merge_plan import TensorTask
from qgpu_merge.raw_tensors import RawTask
from qgpu_merge.read_checkpoint import CONFIG

CHECKPOINT_FOLDER = FolderKind("checkpoint", CONFIG)

SHARD_BYTES = 2**31
"""A shard is closed before it grows beyond this, as transformers does with its larger shards."""

Progress = Callable[[int], None]

Tasks = Sequence[TensorTask | RawTask]


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Writes a JSON file with a final newline."""
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except UnicodeEncodeError:
        # JSON can hold halves of characters, UTF-8 cannot.
        path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def write_tensors(
    folder: Path,
    tasks: Tasks,
    *,
    shard_bytes: int = SHARD_BYTES,
    progress: Progress | None = None,
    hashes: FolderHashes | None = None,
) -> None:
    """Writes all tensors as safetensors shards and their index.

    One piece of a tensor at a time is in memory. `progress` is called with the bytes of each piece
    written; `hashes` gathers the shards' hashes.
    """
    hashes = hashes or FolderHashes(folder)
    shards = _cut(tasks, shard_bytes)
    weight_map: dict[str, str] = {}
    for number, shard in enumerate(shards, start=1):
        name = SINGLE
        if len(shards) > 1:
            name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        weight_map |= {task.name: name for task in shard}
        _write_shard(hashes, name, shard, progress)
    hashes.wait()
    if len(shards) > 1:
        total = sum(task.bytes for task in tasks)
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        write_json(folder / INDEX, index)


def _cut(tasks: Tasks, shard_bytes: int) -> list[list[TensorTask | RawTask]]:
    shards: list[list[TensorTask | RawTask]] = [[]]
    size = 0
    for task in tasks:
        if shards[-1] and size + task.bytes > shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(task)
        size += task.bytes
    return shards


def _pieces(tasks: Tasks) -> Iterator[torch.Tensor]:
    """The pieces of tensors one after the other, as bytes, checked against the plan."""
    for task in tasks:
        rest = task.bytes
        for piece in task.pieces():
            right = piece.dtype == task.dtype and piece.shape[1:] == task.shape[1:]
            if isinstance(task, TensorTask) and not right:
                raise AssertionError(f"{task.name}: made {piece.dtype} {tuple(piece.shape)}")
            rest -= piece.nbytes
            yield piece.contiguous().view(torch.uint8)
        if rest:
            raise AssertionError(f"{task.name}: {rest} bytes of {task.bytes} were not made")


def _made_ahead(pieces: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The pieces, each made by a second thread while the one before is in use."""
    with ThreadPoolExecutor(max_workers=1) as maker:
        coming = maker.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = maker.submit(next, pieces, None)
            yield piece


def write_file(hashes: FolderHashes, name: str, tasks: Tasks) -> None:
    """Writes tensors as one safetensors file of a new folder."""
    _write_shard(hashes, name, tasks, None)


def _write_shard(hashes: FolderHashes, name: str, tasks: Tasks, progress: Progress | None) -> None:
    """One safetensors file: length of the header, JSON header, then the tensors' bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for task in tasks:
        end = offset + task.bytes
        header[task.name] = {
            "dtype": task.stored_dtype,
            "shape": list(task.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with hashes.create(name) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for piece in _made_ahead(_pieces(tasks)):
            file.write(piece.numpy().data)
            if progress is not None:
                progress(piece.nbytes)
