"""What a merged checkpoint keeps of its base beside the weights, so that the base can be had back.

The folder `qgpu-base` holds the base's files as they were, except its weights; of these, the norms
that the merge rescales and the tensors that it leaves out. No loader of models looks into it.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu_merge.errors import CheckpointError
from qgpu_merge.qwen35_layout import is_residual_norm
from qgpu_merge.read_checkpoint import Checkpoint, read_json

FOLDER = "qgpu-base"
KEPT = "kept.safetensors"
TENSORS = "tensors.json"

CARD = "README.md"
OWN_FILES = ("config.json", CARD, "model.safetensors.index.json")
"""Files of a base that the merged checkpoint has its own version of."""

LARGEST_FILE = 256 << 20
"""Files beyond this are no part of a model's configuration or tokenizer."""

SUFFIXES = (".json", ".jinja", ".txt", ".model", ".md")


def side_files(base: Checkpoint) -> list[Path]:
    """The base's files that are no weights: configuration, tokenizer, templates, licence, card."""
    return sorted(
        path
        for path in base.folder.iterdir()
        if path.is_file()
        and (path.suffix in SUFFIXES or path.name.upper().startswith(("LICENSE", "NOTICE")))
        and path.name not in ("model.safetensors.index.json", "qgpu-files.json")
        and path.stat().st_size <= LARGEST_FILE
    )


def write_base_record(folder: Path, base: Checkpoint, dropped: tuple[str, ...]) -> None:
    """Writes `qgpu-base` into the folder of a merged checkpoint."""
    from safetensors.torch import save_file

    target = folder / FOLDER
    target.mkdir()
    for path in side_files(base):
        shutil.copyfile(path, target / path.name)
    norms = [base.stored_name(n) for n, _ in base.shape.tensors() if is_residual_norm(n)]
    save_file({name: base.stored_tensor(name) for name in (*norms, *dropped)}, target / KEPT)
    listed = {name: [base.stored_dtype(name), base.stored_shape(name)] for name in base.stored}
    (target / TENSORS).write_text(json.dumps(listed, indent=0) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class BaseRecord:
    """A `qgpu-base` folder.

    Attributes:
        folder: where it is.
        tensors: stored name -> safetensors dtype and shape of all tensors of the base.
    """

    folder: Path
    tensors: dict[str, tuple[str, tuple[int, ...]]]

    @classmethod
    def read(cls, merged: Path) -> BaseRecord:
        """The record in a merged checkpoint's folder.

        Raises:
            CheckpointError: there is none, or it is damaged.
        """
        folder = merged / FOLDER
        listed: dict[str, Any] = read_json(folder / TENSORS, "the record of a base")
        try:
            tensors = {name: (str(d), tuple(map(int, s))) for name, (d, s) in listed.items()}
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"{folder / TENSORS} is damaged: {error}") from None
        return cls(folder, tensors)
