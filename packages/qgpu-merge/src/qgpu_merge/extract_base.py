"""The base model back out of a merged checkpoint, bit for bit."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from qgpu_isa.file_hashes import FILES_MANIFEST
from qgpu_isa.new_folder import check_apart, new_folder
from qgpu_isa.qwen35_config import check_text_config
from qgpu_isa.verify_files import verify_files
from safetensors import SafetensorError, safe_open

from qgpu_merge.base_record import KEPT, TENSORS, BaseRecord
from qgpu_merge.errors import CheckpointError
from qgpu_merge.merge_plan import STORED_NAMES, TensorTask
from qgpu_merge.qwen35_layout import (
    EMBEDDING,
    HEAD,
    VISION_OUT,
    Axes,
    Qwen35Shape,
    is_residual_norm,
    language_prefix,
    norm_before,
    row_ranges,
    segment_places,
)
from qgpu_merge.raw_tensors import RawTask
from qgpu_merge.read_checkpoint import CONFIG, Checkpoint
from qgpu_merge.widen_residual import Widening
from qgpu_merge.write_checkpoint import CHECKPOINT_FOLDER, Progress, write_tensors

DTYPES = {name: dtype for dtype, name in STORED_NAMES.items()}

Start = Callable[[str, int], Progress]
"""Called with what is done and the bytes that it takes; returns the progress callback."""


def extract_base(
    merged: Path, output: Path, *, force: bool = False, start: Start | None = None
) -> None:
    """Writes the base model of a merged checkpoint; `output` is complete or absent.

    Every tensor has the bits and the dtype that it had; shards may be cut elsewhere. The merged
    checkpoint's files are compared with their hashes first.

    Args:
        merged: what `qgpu-merge build` wrote.
        output: the folder to write.
        force: whether to replace an existing checkpoint.
        start: for progress.

    Raises:
        MergeError: the checkpoint is not a merged one.
        FilesError: it is damaged.
        OutputError: the output exists, is or has a part of the input, or cannot be written.
    """
    start = start or (lambda _what, _bytes: lambda _count: None)
    check_apart(output, [merged])
    checkpoint = Checkpoint(merged)
    checkpoint.section()
    with new_folder(output, CHECKPOINT_FOLDER, force=force) as folder:
        listed = verify_files(merged, lambda size: start("checking", size))
        record = BaseRecord.read(merged)
        kept = sorted(record.folder.iterdir())
        for path in (merged / CONFIG, *kept):
            if path.relative_to(merged).as_posix() not in listed:
                raise CheckpointError(
                    f"{path} is not listed in {FILES_MANIFEST}, as all that the merge wrote is: "
                    "remove it, or build or download the model again"
                )
        tasks = list(_Extraction(checkpoint, record).tasks())
        write_tensors(
            folder, tasks, progress=start("extracting", sum(task.bytes for task in tasks))
        )
        for path in kept:
            if path.name not in (KEPT, TENSORS):
                shutil.copyfile(path, folder / path.name)


class _Extraction:
    def __init__(self, merged: Checkpoint, record: BaseRecord) -> None:
        self.merged, self.record = merged, record
        where = str(record.folder)
        self.shape = Qwen35Shape.from_config(
            check_text_config(record.config, where, CheckpointError)
        )
        self.prefix = language_prefix(record.tensors)
        section = merged.section()
        self.offset = section.circuit_layers
        widths = section.base_hidden, merged.shape.axes["hidden"]
        self.widening = Widening(*widths, scale=section.residual_scale)
        self._check(section.base_hidden, section.token_offset)

    def _check(self, hidden: int, vocab: int) -> None:
        """What the record says against what the merged checkpoint has."""
        own, axes = self.shape.axes, self.merged.shape.axes
        fits = own["hidden"] == hidden and own["vocab"] == vocab
        grown = "intermediate", "key_heads"
        fits = fits and all(own[name] <= axes[name] for name in grown)
        same = "key_head_dim", "value_head_dim"
        fits = fits and all(own[name] == axes[name] for name in same)
        fits = fits and self.shape.values_per_key == self.merged.shape.values_per_key
        fits = fits and self.shape.layer_types == self.merged.shape.layer_types[self.offset :]
        if not fits:
            raise CheckpointError(
                f"{self.record.folder / CONFIG} is not of the model that {self.merged.folder} "
                "was merged from"
            )
        for name, axes_of in self.shape.tensors():
            stored = self._stored(name)
            if stored not in self.record.tensors:
                if name == HEAD:
                    continue
                raise CheckpointError(f"{self.record.folder / TENSORS} has no {stored}")
            dtype, size = self.record.tensors[stored]
            kept = stored in self.record.kept
            if (
                size != self.shape.size(axes_of)
                or dtype not in DTYPES
                or kept is not (is_residual_norm(name))
            ):
                raise CheckpointError(
                    f"{self.record.folder}: {stored} does not fit the base's config"
                )

    def tasks(self) -> Iterator[TensorTask | RawTask]:
        names = {self._stored(name): (name, axes) for name, axes in self.shape.tensors()}
        for stored, (dtype_name, size) in self.record.tensors.items():
            if stored in self.record.kept:
                yield RawTask(stored, self.record.kept[stored])
                continue
            if stored in names:
                pieces = self._pieces(*names[stored], size, DTYPES[dtype_name])
            elif self._is_vision(stored, dtype_name, size):
                pieces = self._pieces_of_vision(stored, size, DTYPES[dtype_name])
            else:
                raise CheckpointError(f"{self.merged.folder} lacks the base's tensor {stored}")
            yield TensorTask(stored, size, DTYPES[dtype_name], pieces)

    def _stored(self, name: str) -> str:
        return name if name == HEAD else self.prefix + name

    def _is_vision(self, stored: str, dtype: str, size: tuple[int, ...]) -> bool:
        if stored not in self.merged.vision or dtype not in DTYPES:
            return False
        found = self.merged.tensors[stored].shape
        return len(found) == len(size) and all(n <= m for n, m in zip(size, found, strict=True))

    def _norm(self, name: str) -> torch.Tensor:
        """A norm as the base had it."""
        stored = self._stored(name)
        path = self.record.kept[stored].path
        try:
            with safe_open(path, framework="pt") as file:
                tensor: torch.Tensor = file.get_tensor(stored)
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} is damaged or cut short: {error}") from None
        return tensor

    def _pieces(
        self, name: str, axes: Axes, size: tuple[int, ...], dtype: torch.dtype
    ) -> Callable[[], Iterator[torch.Tensor]]:
        source = name
        if name.startswith("layers."):
            _, number, stem = name.split(".", 2)
            source = f"layers.{int(number) + self.offset}.{stem}"
        norm = norm_before(name, axes)
        tied = name == HEAD and self.merged.tied
        shifts = None
        if norm is not None and not tied:
            shifts = -self.widening.exponents(self._norm(norm))

        own = self.shape.segments(axes[0])
        # GPU tokens come behind the text's.
        grown = own if axes[0] == "vocab" else self.merged.shape.segments(axes[0])

        def make() -> Iterator[torch.Tensor]:
            for first, last in _places_of_rows(own, grown):
                rows = self.merged.rows(source, first, last)
                rows = rows[tuple(slice(0, n) for n in (last - first, *size[1:]))]
                if shifts is not None:
                    rows = self.widening.behind_norm(name, rows, shifts)
                elif tied or name == EMBEDDING or axes[0] == "hidden":
                    rows = rows / self.widening.scale
                yield rows.to(dtype)

        return make

    def _pieces_of_vision(
        self, stored: str, size: tuple[int, ...], dtype: torch.dtype
    ) -> Callable[[], Iterator[torch.Tensor]]:
        def make() -> Iterator[torch.Tensor]:
            tensor = self.merged.stored_tensor(stored)
            tensor = tensor[tuple(slice(0, n) for n in size)]
            scale = self.widening.scale if stored.startswith(VISION_OUT) else 1.0
            yield (tensor / scale).to(dtype)

        return make


def _places_of_rows(own: Sequence[int], grown: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where the base's rows lie in a padded tensor, in order, some rows at a time."""
    for _, place, size in segment_places(own, grown):
        for first, last in row_ranges(size):
            yield place + first, place + last
