"""The two checkpoints of a check, and whether they belong together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qgpu_isa.qwen35_config import LINEAR

from qgpu_merge.errors import CheckError
from qgpu_merge.read_checkpoint import Checkpoint


@dataclass(frozen=True)
class Pair:
    """An original and what was merged from it.

    Attributes:
        gpu_layers: the first layers of the merged model, which the original lacks.
        base_hidden: width of the original.
        text_tokens: size of the original's vocabulary; GPU tokens come behind it.
        text_gate: every text embedding holds a small positive number in this dimension, which the
            GPU layers read.
    """

    original: Checkpoint
    merged: Checkpoint
    gpu_layers: int
    base_hidden: int
    text_tokens: int
    text_gate: int

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
    if original.merged:
        swapped = "" if merged.merged else "; give the two folders the other way round"
        raise CheckError(f"{original_folder} is a merged checkpoint, not an original{swapped}")
    section = merged.section()
    pair = Pair(
        original,
        merged,
        gpu_layers=section.circuit_layers,
        base_hidden=section.base_hidden,
        text_tokens=section.token_offset,
        text_gate=section.marks["text_gate"],
    )
    _check_fit(pair)
    return pair


def _check_fit(pair: Pair) -> None:
    original, merged = pair.original.shape, pair.merged.shape
    layers = pair.gpu_layers
    facts = {
        "width": (original.axes["hidden"], pair.base_hidden),
        "vocabulary": (original.axes["vocab"], pair.text_tokens),
        "number of layers": (len(original.layer_types), len(merged.layer_types) - layers),
        "order of layer types": (original.layer_types, merged.layer_types[layers:]),
    }
    facts["number of value heads to a key head"] = (original.values_per_key, merged.values_per_key)
    for axis in ("query", "key_value", "head_dim", "key_head_dim", "value_head_dim", "kernel"):
        facts[f"{axis} size"] = (original.axes[axis], merged.axes[axis])
    for axis in ("intermediate", "key_heads"):
        # Padding makes them more.
        if original.axes[axis] > merged.axes[axis]:
            facts[f"{axis} size"] = (original.axes[axis], merged.axes[axis])
    for what, (have, wanted) in facts.items():
        if have != wanted:
            raise CheckError(
                f"{pair.merged.folder} was not merged from {pair.original.folder}: "
                f"the {what} of the original is {have}, the merged model has {wanted}"
            )
    if any(kind != LINEAR for kind in merged.layer_types[:layers]):
        raise CheckError(
            f"{pair.merged.folder}: one of its {layers} GPU layers is no {LINEAR}; "
            "merge it again with `qgpu-merge build`"
        )
