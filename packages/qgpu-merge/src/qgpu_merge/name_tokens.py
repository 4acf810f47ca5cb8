"""A merged checkpoint for servers of text: all GPU tokens have names, and END and FAULT end a text.

Who talks with a model through a server sends text and gets text. The tokenizer that a merge writes
names few GPU tokens, because names cost time at every load, and marks them as special, so servers
leave them out of what they return.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu_isa.checked_json import Fields
from qgpu_isa.file_hashes import FileHash, FolderHashes, read_files_manifest
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.new_folder import check_apart, new_folder
from qgpu_isa.verify_files import Start, verify_once
from qgpu_isa.vocabulary import TokenClass, vocabulary

from qgpu_merge.base_files import CARD
from qgpu_merge.base_record import FOLDER as RECORD
from qgpu_merge.errors import CheckpointError
from qgpu_merge.merged_tokenizer import ALL_TOKENS, gpu_only_tokenizer, merged_tokenizer
from qgpu_merge.read_checkpoint import CONFIG, PIECE_BYTES, Checkpoint, read_json
from qgpu_merge.write_checkpoint import CHECKPOINT_FOLDER, write_json

GENERATION_CONFIG = "generation_config.json"

WEIGHTS = ".safetensors"

CARD_SECTION = """
## Served

This folder was written by `qgpu-merge name-tokens`: its tokenizer names all tokens of the GPU, none
of them as special, and texts end at END and FAULT too. So a server of text can carry launches:

```
transformers serve PATH
qgpu-run launch kernel.cu --engine server --server http://localhost:8000
```
"""

Link = Callable[[Path, Path], None]


@dataclass(frozen=True)
class NamedFolder:
    """What was written.

    Attributes:
        path: the folder.
        machine: name of its machine.
        tokens: how many GPU tokens have names.
        ends: ids of the tokens that end a text.
        text: whether the tokenizer knows text.
        linked, copied: files of weights that share their bytes with the merged checkpoint's, and
            files that do not.
    """

    path: Path
    machine: str
    tokens: int
    ends: tuple[int, ...]
    text: bool
    linked: int
    copied: int

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "path": str(self.path),
            "machine": self.machine,
            "tokens": self.tokens,
            "ends": list(self.ends),
            "text": self.text,
            "linked": self.linked,
            "copied": self.copied,
        }


def name_tokens(
    merged: Path,
    output: Path,
    *,
    force: bool = False,
    start: Start | None = None,
    link: Link = os.link,
) -> NamedFolder:
    """Writes a merged checkpoint again, to be served; `output` is complete or absent.

    Args:
        merged: what `qgpu-merge build` wrote.
        output: the folder to write.
        force: whether to replace an existing checkpoint.
        start: for progress, where the merged checkpoint's files must be read.
        link: makes a second name of a file; where it cannot, the file is copied.

    Raises:
        MergeError: the checkpoint is not a merged one.
        FilesError: it is damaged.
        OutputError: the output exists, is or has a part of the input, or cannot be written.
    """
    check_apart(output, [merged])
    checkpoint = Checkpoint(merged)
    section = checkpoint.section()
    with new_folder(output, CHECKPOINT_FOLDER, force=force) as folder:
        verify_once(merged, start)
        listed = read_files_manifest(merged)
        tokenizer = merged_tokenizer(
            merged / RECORD, section.machine, section.token_offset, ALL_TOKENS
        )
        text = bool(tokenizer)
        if not text:
            tokenizer = gpu_only_tokenizer(section.machine, section.token_offset)
        ends = _ends(section.machine, section.token_offset)
        generation = generation_config(checkpoint, ends)
        hashes = FolderHashes(folder)
        kept = [name for name in listed if name not in (*tokenizer, GENERATION_CONFIG)]
        weights = [name for name in kept if name.endswith(WEIGHTS)]
        linked = sum(_take_weights(merged, name, listed[name], hashes, link) for name in weights)
        for name in sorted(set(kept) - set(weights)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(merged / name, folder / name)
        hashes.wait()
        for name, data in {**tokenizer, GENERATION_CONFIG: generation}.items():
            write_json(folder / name, data)
        if (merged / CARD).is_file():
            card = (merged / CARD).read_text(encoding="utf-8")
            (folder / CARD).write_text(card + CARD_SECTION, encoding="utf-8")
        hashes.write_manifest()
    return NamedFolder(
        output,
        section.machine.name,
        vocabulary(section.machine).size,
        tuple(generation["eos_token_id"]),
        text,
        linked,
        len(weights) - linked,
    )


def _ends(machine: MachineConfig, token_offset: int) -> list[int]:
    vocab = vocabulary(machine)
    classes = TokenClass.END, TokenClass.FAULT
    return [token_offset + number for cls in classes for number in vocab.range_of(cls)]


def generation_config(checkpoint: Checkpoint, ends: list[int]) -> dict[str, Any]:
    """The checkpoint's generation config with more tokens that end a text."""
    path = checkpoint.folder / GENERATION_CONFIG
    if path.is_file():
        data = read_json(path, "a checkpoint folder")
        found = data.get("eos_token_id")
    else:
        # What transformers makes of a model without one.
        data = {"_from_model_config": True}
        raw = checkpoint.raw_config
        found = raw.get("eos_token_id", raw.get("text_config", {}).get("eos_token_id"))
    if type(found) is int:
        found = [found]
    where = str(path if path.is_file() else checkpoint.folder / CONFIG)
    own = Fields({"eos_token_id": found or []}, where, CheckpointError).integers("eos_token_id")
    return data | {"eos_token_id": [*own, *(end for end in ends if end not in own)]}


def _take_weights(
    merged: Path, name: str, known: FileHash, hashes: FolderHashes, link: Link
) -> bool:
    """Takes a file over; whether it shares its bytes with the merged checkpoint's."""
    source, target = merged / name, hashes.folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        # Downloaded checkpoints are links to where a cache keeps its files.
        link(source.resolve(), target)
    except OSError:
        with source.open("rb") as file, hashes.create(name) as copy:
            while piece := file.read(PIECE_BYTES):
                copy.write(piece)
        return False
    hashes.known[name] = known
    return True
