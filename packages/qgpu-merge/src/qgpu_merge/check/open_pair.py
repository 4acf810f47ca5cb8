"""The two checkpoints of a check, and whether they belong together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu_merge.errors import CheckError
from qgpu_merge.qwen35_layout import LINEAR
from qgpu_merge.read_checkpoint import Checkpoint


@dataclass(frozen=True)
class Marks:
    """Dimensions behind the base's that tell text from GPU tokens.

    Attributes:
        text_gate: every text embedding holds a small positive number here, read by the GPU layers.
    """

    text_gate: int


@dataclass(frozen=True)
class Pair:
    """An original and what was merged from it.

    Attributes:
        gpu_layers: the first layers of the merged model, which the original lacks.
        base_hidden: width of the original.
        text_tokens: size of the original's vocabulary; GPU tokens come behind it.
        marks: None in checkpoints of the older kind, whose circuit shares no dimension with text.
    """

    original: Checkpoint
    merged: Checkpoint
    gpu_layers: int
    base_hidden: int
    text_tokens: int
    marks: Marks | None

    @property
    def gpu_tokens(self) -> range:
        """Ids of the GPU tokens."""
        return range(self.text_tokens, self.merged.shape.axes["vocab"])


def open_pair(original_folder: Path, merged_folder: Path) -> Pair:
    """Opens both folders; reads no weights.

    Raises:
        CheckpointError: one of them is not a complete Qwen3.5 checkpoint.
        CheckError: they are swapped or do not belong together.
    """
    original, merged = Checkpoint(original_folder), Checkpoint(merged_folder)
    if "qgpu" in original.raw_config:
        swapped = (
            "" if "qgpu" in merged.raw_config else "; give the two folders the other way round"
        )
        raise CheckError(f"{original_folder} is a merged checkpoint, not an original{swapped}")
    section = merged.raw_config.get("qgpu")
    if not isinstance(section, dict):
        raise CheckError(
            f"{merged_folder} is not a merged checkpoint: its config has no qgpu section; "
            "make one with `qgpu-merge build`"
        )
    pair = _pair(original, merged, section)
    _check_fit(pair)
    return pair


def _pair(original: Checkpoint, merged: Checkpoint, section: dict[str, Any]) -> Pair:
    try:
        marks = section.get("marks")
        return Pair(
            original,
            merged,
            gpu_layers=int(section["circuit_layers"]),
            base_hidden=int(section["base_hidden"]),
            text_tokens=int(section["token_offset"]),
            marks=None if marks is None else Marks(int(marks["text_gate"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckError(
            f"{merged.folder}: the qgpu section of config.json is wrong: {error!r}"
        ) from None


def _check_fit(pair: Pair) -> None:
    original, merged = pair.original.shape, pair.merged.shape
    layers = pair.gpu_layers
    facts = {
        "width": (original.axes["hidden"], pair.base_hidden),
        "vocabulary": (original.axes["vocab"], pair.text_tokens),
        "number of layers": (len(original.layer_types), len(merged.layer_types) - layers),
        "order of layer types": (original.layer_types, merged.layer_types[layers:]),
    }
    for axis in ("query", "key_value", "head_dim", "value", "qkv", "value_heads", "kernel"):
        facts[f"{axis} size"] = (original.axes[axis], merged.axes[axis])
    for what, (have, wanted) in facts.items():
        if have != wanted:
            raise CheckError(
                f"{pair.merged.folder} was not merged from {pair.original.folder}: "
                f"the {what} of the original is {have}, the merged model has {wanted}"
            )
    width = merged.axes["hidden"]
    mark_fits = pair.marks is None or pair.base_hidden <= pair.marks.text_gate < width
    linear = all(kind == LINEAR for kind in merged.layer_types[:layers])
    if not (linear and mark_fits and pair.base_hidden <= width and len(pair.gpu_tokens)):
        raise CheckError(
            f"{pair.merged.folder}: the qgpu section of config.json does not fit the model; "
            "merge it again with `qgpu-merge build`"
        )
