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

from qgpu_merge.merge_plan import TensorTask

CHECKPOINT_FOLDER = FolderKind("checkpoint", "config.json")

STORED_NAMES = {torch.bfloat16: "BF16", torch.float32: "F32", torch.float16: "F16"}
"""Names of dtypes in a safetensors header."""

SHARD_BYTES = 2**31
"""A shard is closed before it grows beyond this, as transformers does with its larger shards."""

Progress = Callable[[int], None]


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Writes a JSON file with a final newline."""
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_tensors(
    folder: Path,
    tasks: Sequence[TensorTask],
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
        name = "model.safetensors"
        if len(shards) > 1:
            name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        weight_map |= {task.name: name for task in shard}
        _write_shard(hashes, name, shard, progress)
    hashes.wait()
    if len(shards) > 1:
        total = sum(task.bytes for task in tasks)
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        write_json(folder / "model.safetensors.index.json", index)


def _cut(tasks: Sequence[TensorTask], shard_bytes: int) -> list[list[TensorTask]]:
    shards: list[list[TensorTask]] = [[]]
    size = 0
    for task in tasks:
        if shards[-1] and size + task.bytes > shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(task)
        size += task.bytes
    return shards


def _pieces(tasks: Sequence[TensorTask]) -> Iterator[torch.Tensor]:
    """The pieces of tensors one after the other, as bytes, checked against the plan."""
    for task in tasks:
        rest = task.bytes
        for piece in task.pieces():
            if piece.dtype != task.dtype or piece.shape[1:] != task.shape[1:]:
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


def _write_shard(
    hashes: FolderHashes, name: str, tasks: Sequence[TensorTask], progress: Progress | None
) -> None:
    """One safetensors file: length of the header, JSON header, then the tensors' bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for task in tasks:
        end = offset + task.bytes
        header[task.name] = {
            "dtype": STORED_NAMES[task.dtype],
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
