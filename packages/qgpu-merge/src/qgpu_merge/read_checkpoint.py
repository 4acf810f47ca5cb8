"""A Qwen3.5 checkpoint folder, read one tensor at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qgpu_isa.checked_json import load_object
from qgpu_isa.qgpu_section import QgpuSection, read_section
from qgpu_isa.qwen35_config import MULTIMODAL_MODEL_TYPE, check_text_config
from qgpu_isa.weight_files import StoredTensor, stored_tensors
from safetensors import SafetensorError, safe_open

from qgpu_merge.errors import CheckpointError
from qgpu_merge.qwen35_layout import (
    DRAFT,
    EMBEDDING,
    HEAD,
    VISION,
    Qwen35Shape,
    language_prefix,
)

if TYPE_CHECKING:
    import torch

CONFIG = "config.json"

PIECE_BYTES = 4 << 20


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        CheckpointError: there is no such file or it holds no JSON object.
    """
    missing = f"{path.parent} is not {what}: it has no {path.name}"
    return load_object(path, CheckpointError, missing)


class Checkpoint:
    """A folder with config.json and safetensors files, checked against Qwen3.5's layout.

    Text-only checkpoints and the published multimodal ones are read alike.

    Attributes:
        raw_config: config.json.
        config: the text model's config, with what it leaves out filled in.
        shape: sizes of its tensors.
        tensors: all tensors in the files, by the names that they have there.
        tied: whether the head shares the embedding. A head that is stored too, and differs, is one
            of its own whatever the config says: so transformers loads it.
        multimodal: whether its config is the multimodal one.
        vision: stored names of the vision tower's tensors.
        draft: stored names of the multi-token prediction module's tensors.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise CheckpointError(f"{folder} is not a checkpoint folder")
        self.folder = folder
        self.raw_config = read_json(folder / CONFIG, "a checkpoint folder")
        self.config = check_text_config(self.raw_config, str(folder), CheckpointError)
        self.shape = Qwen35Shape.from_config(self.config)
        self.tensors = stored_tensors(folder, CheckpointError)
        self._prefix = language_prefix(self.tensors)
        self.multimodal = self.raw_config["model_type"] == MULTIMODAL_MODEL_TYPE
        self.vision = sorted(name for name in self.tensors if name.startswith(VISION))
        self.draft = sorted(name for name in self.tensors if name.startswith(DRAFT))
        self.tied = bool(self.config["tie_word_embeddings"])
        self._verify()
        self.tied = self.tied and not self._has_another_head()

    @property
    def merged(self) -> bool:
        """Whether it says that it is merged with a circuit."""
        return "qgpu" in self.raw_config

    def section(self) -> QgpuSection:
        """What a merged checkpoint says about its circuit.

        Raises:
            CheckpointError: it is none, or what it says does not fit its tensors.
        """
        section = read_section(self.raw_config, str(self.folder), CheckpointError)
        layers, width = len(self.shape.layer_types), self.shape.axes["hidden"]
        fits = section.circuit_layers < layers and section.base_hidden <= width
        fits = fits and section.token_offset < self.shape.axes["vocab"]
        fits = fits and all(section.base_hidden <= at < width for at in section.marks.values())
        if not fits:
            raise CheckpointError(
                f"{self.folder}: the qgpu section of config.json does not fit the model; "
                "merge it again with `qgpu-merge build`"
            )
        return section

    def stored_name(self, name: str) -> str:
        """The name in the files of a tensor given by its name without prefix."""
        return name if name == HEAD else self._prefix + name

    def _verify(self) -> None:
        problems = []
        known = {self.stored_name(name): axes for name, axes in self.shape.tensors()}
        for stored, axes in known.items():
            tensor = self.tensors.get(stored)
            wanted = self.shape.size(axes)
            if tensor is None:
                if stored != HEAD or not self.tied:
                    problems.append(f"{stored} is missing")
            elif tensor.shape != wanted:
                problems.append(f"{stored} has shape {tensor.shape}, the config says {wanted}")
        unknown = self.tensors.keys() - known.keys() - {*self.vision, *self.draft}
        problems += [f"{name} is no tensor of Qwen3.5" for name in sorted(unknown)]
        if problems:
            more = f"\n  and {len(problems) - 5} more" if len(problems) > 5 else ""
            listed = "\n  ".join(problems[:5])
            raise CheckpointError(f"{self.folder}: tensors do not fit:\n  {listed}{more}")

    def _has_another_head(self) -> bool:
        head, embedding = self.tensors.get(HEAD), self.tensors[self.stored_name(EMBEDDING)]
        if head is None:
            return False
        if head.dtype != embedding.dtype:
            return True
        pieces = zip(self.raw(HEAD), self.raw(self.stored_name(EMBEDDING)), strict=True)
        return any(one != other for one, other in pieces)

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor by its name without prefix; a tied head is the embedding."""
        if name == HEAD and self.tied:
            name = EMBEDDING
        return self.stored_tensor(self.stored_name(name))

    def stored_tensor(self, stored: str) -> torch.Tensor:
        """A tensor by its name in the files."""
        with _open(self.tensors[stored].path) as file:
            tensor: torch.Tensor = file.get_tensor(stored)
        return tensor

    def rows(self, name: str, first: int, last: int) -> torch.Tensor:
        """Rows of a matrix by its name without prefix."""
        stored = self.stored_name(EMBEDDING if name == HEAD and self.tied else name)
        with _open(self.tensors[stored].path) as file:
            tensor: torch.Tensor = file.get_slice(stored)[first:last]
        return tensor

    def raw(self, stored: str) -> Iterator[bytes]:
        """The bytes of a tensor by its name in the files, whatever its dtype."""
        return raw_pieces(self.tensors[stored])

    def dtype(self, name: str) -> str:
        """The safetensors dtype in which a tensor is stored, by its name without prefix."""
        stored = self.stored_name(EMBEDDING if self.tied and name == HEAD else name)
        return self.tensors[stored].dtype

    def dtypes(self) -> dict[str, int]:
        """How many tensors are stored in each dtype."""
        return dict(Counter(tensor.dtype for tensor in self.tensors.values()))

    def bytes(self) -> int:
        """Size of the tensor files."""
        return sum(path.stat().st_size for path in {t.path for t in self.tensors.values()})


def raw_pieces(tensor: StoredTensor) -> Iterator[bytes]:
    """The bytes of a stored tensor.

    Raises:
        CheckpointError: the file was cut short since its header was read.
    """
    with tensor.path.open("rb") as file:
        file.seek(tensor.begin)
        left = tensor.bytes
        while left:
            piece = file.read(min(left, PIECE_BYTES))
            if not piece:
                raise CheckpointError(f"{tensor.path} is damaged or cut short")
            left -= len(piece)
            yield piece


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing") from None
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged or cut short: {error}") from None
