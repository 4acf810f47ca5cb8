"""A Qwen3.5 checkpoint folder, read one tensor at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from qgpu_merge.errors import CheckpointError
from qgpu_merge.qwen35_layout import (
    DRAFT,
    EMBEDDING,
    HEAD,
    MULTIMODAL_MODEL_TYPE,
    TEXT_MODEL_TYPE,
    VISION,
    Qwen35Shape,
)

if TYPE_CHECKING:
    import torch

CONFIG_DEFAULTS: dict[str, Any] = {
    "linear_conv_kernel_dim": 4,
    "head_dim": 256,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "attention_bias": False,
}
"""What transformers assumes for fields that a Qwen3.5 config leaves out."""


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        CheckpointError: there is no such file or it holds no JSON object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path.parent} is not {what}: it has no {path.name}") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"cannot read {path}: {error}") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{path} holds no JSON object")
    return data


class Checkpoint:
    """A folder with config.json and safetensors files, checked against Qwen3.5's layout.

    Text-only checkpoints and the published multimodal ones are read alike.

    Attributes:
        raw_config: config.json.
        config: the text model's config, with layer_types filled in.
        shape: sizes of its tensors.
        tied: whether the head shares the embedding.
        multimodal: whether its config is the multimodal one.
        vision: stored names of the vision tower's tensors.
        draft: stored names of the multi-token prediction module's tensors.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise CheckpointError(f"{folder} is not a checkpoint folder")
        self.folder = folder
        self.raw_config = read_json(folder / "config.json", "a checkpoint folder")
        self.config = text_config(folder, self.raw_config)
        self.shape = Qwen35Shape.from_config(self.config)
        self._files = _tensor_files(folder)
        self._prefix = "model."
        if any(name.startswith("model.language_model.") for name in self._files):
            self._prefix = "model.language_model."
        self.tied = bool(self.config["tie_word_embeddings"])
        self.multimodal = self.raw_config["model_type"] == MULTIMODAL_MODEL_TYPE
        self.vision = sorted(name for name in self._files if name.startswith(VISION))
        self.draft = sorted(name for name in self._files if name.startswith(DRAFT))
        self._verify()

    def stored_name(self, name: str) -> str:
        """The name in the files of a tensor given by its name without prefix."""
        return name if name == HEAD else self._prefix + name

    def _verify(self) -> None:
        problems = []
        for name, axes in self.shape.tensors():
            if name == HEAD and self.tied:
                continue
            stored = self.stored_name(name)
            path = self._files.get(stored)
            if path is None:
                problems.append(f"{stored} is missing")
                continue
            with _open(path) as file:
                found = tuple(file.get_slice(stored).get_shape())
            if found != self.shape.size(axes):
                wanted = self.shape.size(axes)
                problems.append(f"{stored} has shape {found}, the config says {wanted}")
        known = {self.stored_name(name) for name, _ in self.shape.tensors()}
        unknown = self._files.keys() - known - {*self.vision, *self.draft}
        problems += [f"{name} is no tensor of Qwen3.5" for name in sorted(unknown)]
        if problems:
            more = f"\n  and {len(problems) - 5} more" if len(problems) > 5 else ""
            listed = "\n  ".join(problems[:5])
            raise CheckpointError(f"{self.folder}: tensors do not fit:\n  {listed}{more}")

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor by its name without prefix; a tied head is the embedding."""
        if name == HEAD and self.tied:
            name = EMBEDDING
        return self.stored_tensor(self.stored_name(name))

    def stored_tensor(self, stored: str) -> torch.Tensor:
        """A tensor by its name in the files."""
        with _open(self._files[stored], "pt") as file:
            tensor: torch.Tensor = file.get_tensor(stored)
        return tensor

    def rows(self, name: str, first: int, last: int) -> torch.Tensor:
        """Rows of a matrix by its name without prefix."""
        stored = self.stored_name(EMBEDDING if name == HEAD and self.tied else name)
        with _open(self._files[stored], "pt") as file:
            tensor: torch.Tensor = file.get_slice(stored)[first:last]
        return tensor

    def embedding_rows(self, at_a_time: int = 8192) -> Iterator[torch.Tensor]:
        """The embedding, some rows at a time."""
        count = self.shape.axes["vocab"]
        for first in range(0, count, at_a_time):
            yield self.rows(EMBEDDING, first, min(first + at_a_time, count))

    def dtype(self, name: str) -> str:
        """The safetensors dtype in which a tensor is stored, by its name without prefix."""
        return self.stored_dtype(
            self.stored_name(EMBEDDING if self.tied and name == HEAD else name)
        )

    @property
    def stored(self) -> list[str]:
        """Names of all tensors in the files, sorted."""
        return sorted(self._files)

    def stored_shape(self, stored: str) -> list[int]:
        """Shape of a tensor by its name in the files."""
        with _open(self._files[stored]) as file:
            return list(file.get_slice(stored).get_shape())

    def stored_dtype(self, stored: str) -> str:
        """The safetensors dtype of a tensor by its name in the files."""
        with _open(self._files[stored]) as file:
            return str(file.get_slice(stored).get_dtype())

    def dtypes(self) -> dict[str, int]:
        """How many tensors are stored in each dtype."""
        counts: Counter[str] = Counter()
        for stored, path in self._files.items():
            with _open(path) as file:
                counts[str(file.get_slice(stored).get_dtype())] += 1
        return dict(counts)

    def bytes(self) -> int:
        """Size of the tensor files."""
        return sum(path.stat().st_size for path in set(self._files.values()))


def text_config(folder: Path, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The text model's part of a config.json, with what it leaves out filled in.

    Raises:
        CheckpointError: it is not Qwen3.5's.
    """
    kind = raw.get("model_type")
    if kind == MULTIMODAL_MODEL_TYPE and isinstance(raw.get("text_config"), dict):
        text = dict(raw["text_config"])
        text.setdefault("tie_word_embeddings", raw.get("tie_word_embeddings", False))
    elif kind == TEXT_MODEL_TYPE:
        text = dict(raw)
    else:
        raise CheckpointError(
            f"{folder} is not a Qwen3.5 checkpoint: its model_type is {kind!r}, "
            f"not '{TEXT_MODEL_TYPE}' or '{MULTIMODAL_MODEL_TYPE}'"
        )
    config = CONFIG_DEFAULTS | text
    if config["attention_bias"]:
        raise CheckpointError(f"{folder}: attention with biases is not Qwen3.5's")
    if config.get("layer_types") is None:
        every = config.pop("full_attention_interval", None) or 4
        count = config.get("num_hidden_layers", 0)
        config["layer_types"] = [
            "linear_attention" if (i + 1) % every else "full_attention" for i in range(count)
        ]
    return config


def _tensor_files(folder: Path) -> dict[str, Path]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        weight_map = read_json(index, "a checkpoint folder").get("weight_map", {})
        paths = sorted({folder / str(name) for name in weight_map.values()})
    else:
        paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise CheckpointError(f"{folder} has no safetensors files")
    files: dict[str, Path] = {}
    for path in paths:
        with _open(path) as file:
            files.update(dict.fromkeys(file.keys(), path))
    return files


def _open(path: Path, framework: str = "numpy") -> Any:
    """A safetensors file; names and shapes need no torch, whose import takes seconds."""
    try:
        return safe_open(path, framework=framework)
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing") from None
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged or cut short: {error}") from None
