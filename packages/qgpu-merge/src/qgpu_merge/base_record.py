"""What a merged checkpoint keeps of its base beside the weights, so that the base can be had back.

The folder `qgpu-base` holds the base's files as they were, except its weights; of these, the norms
that the merge rescales and the tensors that it leaves out. No loader of models looks into it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu_isa.checked_json import Fields
from qgpu_isa.file_hashes import FILES_MANIFEST, FolderHashes
from qgpu_isa.weight_files import BITS, INDEX, StoredTensor, read_header

from qgpu_merge.base_files import CARD
from qgpu_merge.errors import CheckpointError
from qgpu_merge.qwen35_layout import is_residual_norm
from qgpu_merge.raw_tensors import RawTask
from qgpu_merge.read_checkpoint import CONFIG, Checkpoint, read_json
from qgpu_merge.write_checkpoint import write_file, write_json

FOLDER = "qgpu-base"
KEPT = "kept.safetensors"
TENSORS = "tensors.json"

OWN_FILES = (CONFIG, CARD)
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
        and path.name not in (INDEX, FILES_MANIFEST)
        and path.stat().st_size <= LARGEST_FILE
    )


def write_base_record(hashes: FolderHashes, base: Checkpoint, dropped: tuple[str, ...]) -> None:
    """Writes `qgpu-base` into the folder of a merged checkpoint, whose hashes are gathered."""
    target = hashes.folder / FOLDER
    target.mkdir()
    for path in side_files(base):
        shutil.copyfile(path, target / path.name)
    norms = [base.stored_name(n) for n, _ in base.shape.tensors() if is_residual_norm(n)]
    kept = [RawTask(name, base.tensors[name]) for name in (*norms, *dropped)]
    write_file(hashes, f"{FOLDER}/{KEPT}", kept)
    listed = {name: [t.dtype, list(t.shape)] for name, t in sorted(base.tensors.items())}
    write_json(target / TENSORS, listed)


@dataclass(frozen=True)
class BaseRecord:
    """A `qgpu-base` folder.

    Attributes:
        folder: where it is.
        config: the base's config.json.
        tensors: stored name -> safetensors dtype and shape of all tensors of the base.
        kept: where those of them are that were kept as they were.
    """

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, tuple[str, tuple[int, ...]]]
    kept: dict[str, StoredTensor]

    @classmethod
    def read(cls, merged: Path) -> BaseRecord:
        """The record in a merged checkpoint's folder.

        Raises:
            CheckpointError: there is none, or it is damaged.
        """
        folder = merged / FOLDER
        config = read_json(folder / CONFIG, "the record of a base")
        listed = read_json(folder / TENSORS, "the record of a base")
        entries = Fields(listed, str(folder / TENSORS), CheckpointError)
        tensors = {}
        for name in listed:
            entry = entries.array(name)
            if len(entry) != 2 or entry[0] not in tuple(BITS):
                entries.fail(name, "a dtype and a shape")
            shape = Fields({name: entry[1]}, entries.where, CheckpointError).integers(name)
            tensors[name] = (str(entry[0]), tuple(shape))
        kept = read_header(folder / KEPT, CheckpointError)
        for name, tensor in kept.items():
            if tensors.get(name) != (tensor.dtype, tensor.shape):
                raise CheckpointError(f"{folder}: {KEPT} and {TENSORS} disagree about {name}")
        return cls(folder, config, tensors, kept)
