"""Copies of a merged checkpoint with changed tensors."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

GATE = 67
"""The text gate of what is merged with the fake circuit."""

Tensors = dict[str, torch.Tensor]


def edit_tensors(source: Path, target: Path, change: Callable[[Tensors], None]) -> Path:
    """A copy of a checkpoint, in one file, with changed tensors."""
    target.mkdir()
    tensors: Tensors = {}
    for path in sorted(source.glob("*.safetensors")):
        tensors |= load_file(path)
    change(tensors)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(source / "config.json", target)
    return target
