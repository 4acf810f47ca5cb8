"""The base model back out of a merged checkpoint, bit for bit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from qgpu_isa.new_folder import new_folder
from safetensors import SafetensorError, safe_open

from qgpu_merge.base_record import KEPT, TENSORS, BaseRecord
from qgpu_merge.errors import CheckpointError, MergeError
from qgpu_merge.merge_plan import TensorTask
from qgpu_merge.qwen35_layout import EMBEDDING, HEAD, VISION_OUT, Qwen35Shape, norm_before
from qgpu_merge.read_checkpoint import Checkpoint, text_config
from qgpu_merge.widen_residual import Widening
from qgpu_merge.write_checkpoint import CHECKPOINT_FOLDER, Progress, write_tensors

DTYPES = {"BF16": torch.bfloat16, "F32": torch.float32, "F16": torch.float16}

ROWS_AT_A_TIME = 8192


def extract_base(
    merged: Path,
    output: Path,
    *,
    force: bool = False,
    start: Callable[[int], Progress] | None = None,
) -> None:
    """Writes the base model of a merged checkpoint; `output` is complete or absent.

    Every tensor has the bits and the dtype that it had; shards may be cut elsewhere.

    Args:
        merged: what `qgpu-merge build` wrote.
        output: the folder to write.
        force: whether to replace an existing checkpoint.
        start: called with the bytes to write; returns the progress callback.

    Raises:
        MergeError: the checkpoint is not a merged one, or damaged.
        OutputError: the output exists or cannot be written.
    """
    checkpoint = Checkpoint(merged)
    if "qgpu" not in checkpoint.raw_config:
        raise MergeError(f"{merged} is not a merged checkpoint: its config has no qgpu section")
    if output.resolve() == merged.resolve():
        raise MergeError(f"the output {output} is also the input")
    record = BaseRecord.read(merged)
    tasks = list(_Extraction(checkpoint, record).tasks())
    with new_folder(output, CHECKPOINT_FOLDER, force=force) as folder:
        write_tensors(folder, tasks, progress=start(sum(t.bytes for t in tasks)) if start else None)
        for path in sorted(record.folder.iterdir()):
            if path.name not in (KEPT, TENSORS, "config.json"):
                shutil.copyfile(path, folder / path.name)
        shutil.copyfile(record.folder / "config.json", folder / "config.json")


class _Extraction:
    def __init__(self, merged: Checkpoint, record: BaseRecord) -> None:
        self.merged, self.record = merged, record
        config_path = record.folder / "config.json"
        try:
            config: dict[str, Any] = json.loads(config_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"cannot read {config_path}: {error}") from None
        self.shape = Qwen35Shape.from_config(text_config(record.folder, config))
        widths = self.shape.axes["hidden"], merged.shape.axes["hidden"]
        try:
            scale = int(merged.raw_config["qgpu"]["residual_scale"])
        except (KeyError, TypeError, ValueError):
            raise CheckpointError(
                f"{merged.folder}: the config's qgpu section is damaged"
            ) from None
        self.widening = Widening(*widths, scale=scale)
        self.offset = len(merged.shape.layer_types) - len(self.shape.layer_types)
        self.kept = set(self._with_kept(lambda file: file.keys()))
        self.prefix = next(
            (p for p in ("model.language_model.", "model.") if f"{p}norm.weight" in record.tensors),
            "model.",
        )

    def tasks(self) -> Iterator[TensorTask]:
        names = {self._stored(name): (name, axes) for name, axes in self.shape.tensors()}
        for stored, (dtype_name, size) in self.record.tensors.items():
            dtype = DTYPES[dtype_name]
            if stored in self.kept:
                pieces = self._pieces_of_kept(stored)
            elif stored in names:
                pieces = self._pieces(*names[stored], size, dtype)
            elif stored in self.merged.vision:
                pieces = self._pieces_of_vision(stored, size, dtype)
            else:
                raise CheckpointError(f"{self.merged.folder} lacks the base's tensor {stored}")
            yield TensorTask(stored, size, dtype, pieces)

    def _stored(self, name: str) -> str:
        return name if name == HEAD else self.prefix + name

    def _with_kept(self, use: Callable[[Any], Any]) -> Any:
        path = self.record.folder / KEPT
        try:
            with safe_open(path, framework="pt") as file:
                return use(file)
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} is damaged or cut short: {error}") from None

    def _pieces_of_kept(self, stored: str) -> Callable[[], Iterator[torch.Tensor]]:
        return lambda: iter([self._with_kept(lambda file: file.get_tensor(stored))])

    def _pieces(
        self, name: str, axes: tuple[str, ...], size: tuple[int, ...], dtype: torch.dtype
    ) -> Callable[[], Iterator[torch.Tensor]]:
        source = name
        if name.startswith("layers."):
            _, number, stem = name.split(".", 2)
            source = f"layers.{int(number) + self.offset}.{stem}"
        norm = norm_before(name, axes)
        tied = name == HEAD and self.merged.tied
        shifts = None
        if norm is not None and not tied:
            stored = self._with_kept(lambda file: file.get_tensor(self._stored(norm)))
            shifts = -self.widening.exponents(stored)

        def make() -> Iterator[torch.Tensor]:
            for first in range(0, size[0], ROWS_AT_A_TIME):
                rows = self.merged.rows(source, first, min(first + ROWS_AT_A_TIME, size[0]))
                rows = rows[tuple(slice(0, n) for n in (rows.shape[0], *size[1:]))]
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
