"""A circuit folder: sparse tensors and their manifest."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from qgpu_isa.errors import ConfigError
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.vocabulary import vocabulary
from safetensors import SafetensorError, safe_open

from qgpu_merge.errors import CheckpointError, CircuitError
from qgpu_merge.qwen35_layout import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    LAYER_TENSORS,
    LINEAR,
    MIXER_TENSORS,
    Axes,
    is_residual_norm,
)
from qgpu_merge.read_checkpoint import read_json

MANIFEST = "circuit.json"
TENSORS = "circuit.safetensors"
FORMAT = 1

SHAPE_FIELDS = (
    "hidden_size",
    "intermediate_size",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "num_layers",
    "base_hidden",
    "rms_norm_eps",
)


class Circuit:
    """A circuit as `qgpu-circuit emit` writes it.

    Attributes:
        machine: the machine it computes.
        sizes: the manifest's `shape` fields.
        memory: where the words of memory lie.
        digest: identity of the circuit.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            manifest = read_json(folder / MANIFEST, "a circuit folder")
        except CheckpointError as error:
            raise CircuitError(str(error)) from None
        if manifest.get("format") != FORMAT:
            raise CircuitError(
                f"{folder / MANIFEST} has format {manifest.get('format')!r}; "
                f"this version reads format {FORMAT}"
            )
        try:
            self.machine = MachineConfig(**manifest["machine"])
            self.sizes: dict[str, Any] = {name: manifest["shape"][name] for name in SHAPE_FIELDS}
            self.memory: dict[str, Any] = manifest["memory"]
            self.digest = str(manifest["digest"])
            self._tensors: dict[str, Any] = manifest["tensors"]
        except (KeyError, TypeError, ConfigError) as error:
            raise CircuitError(f"{folder / MANIFEST} is not a circuit manifest: {error}") from None
        self.path = folder / TENSORS
        with self._open() as file:
            self._stored = set(file.keys())
        self._verify()

    @property
    def num_layers(self) -> int:
        return int(self.sizes["num_layers"])

    @property
    def base_hidden(self) -> int:
        return int(self.sizes["base_hidden"])

    @property
    def hidden_size(self) -> int:
        return int(self.sizes["hidden_size"])

    def axes(self, name: str) -> Axes:
        """The axes of one of the circuit's tensors."""
        if name.startswith("layers."):
            stem = name.split(".", 2)[2]
            return (LAYER_TENSORS | MIXER_TENSORS[LINEAR])[stem]
        return ("hidden",) if name == FINAL_NORM else ("vocab", "hidden")

    def tensor_names(self) -> list[str]:
        """Full names (without `model.`) of all tensors."""
        stems = LAYER_TENSORS | MIXER_TENSORS[LINEAR]
        layers = [f"layers.{i}.{stem}" for i in range(self.num_layers) for stem in stems]
        return [EMBEDDING, *layers, FINAL_NORM, HEAD]

    def _verify(self) -> None:
        s = self.sizes
        key = s["linear_num_key_heads"] * s["linear_key_head_dim"]
        value = s["linear_num_value_heads"] * s["linear_value_head_dim"]
        size = {
            "vocab": vocabulary(self.machine).size,
            "hidden": s["hidden_size"],
            "intermediate": s["intermediate_size"],
            "qkv": 2 * key + value,
            "value": value,
            "value_heads": s["linear_num_value_heads"],
            "value_head_dim": s["linear_value_head_dim"],
            "one": 1,
            "kernel": 4,
        }
        for name in self.tensor_names():
            entry = self._tensors.get(name)
            if entry is None or {f"{name}.index", f"{name}.value"} - self._stored:
                raise CircuitError(f"{self.folder}: tensor {name} is missing")
            wanted = tuple(size[axis] for axis in self.axes(name) if axis != "one")
            if tuple(entry["shape"]) != wanted:
                raise CircuitError(
                    f"{self.folder}: {name} has shape {tuple(entry['shape'])}, not {wanted}"
                )

    def _open(self) -> Any:
        try:
            return safe_open(self.path, framework="pt")
        except FileNotFoundError:
            raise CircuitError(f"{self.folder} has no {TENSORS}") from None
        except (SafetensorError, OSError) as error:
            raise CircuitError(f"{self.path} is damaged or cut short: {error}") from None

    def sparse(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        """The listed elements of a tensor: index [ndim, nnz] and value [nnz]."""
        with self._open() as file:
            return file.get_tensor(f"{name}.index").long(), file.get_tensor(f"{name}.value")

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor in full, bf16; conv1d.weight has its middle axis of 1."""
        entry = self._tensors[name]
        index, value = self.sparse(name)
        dense = torch.full(entry["shape"], float(entry.get("fill", 0.0)), dtype=torch.bfloat16)
        dense[tuple(index)] = value.to(torch.bfloat16)
        return dense.unsqueeze(1) if "one" in self.axes(name) else dense

    @cached_property
    def spare_dimension(self) -> int | None:
        """A circuit dimension that no weight reads or writes; None if there is none."""
        used = torch.zeros(self.hidden_size, dtype=torch.bool)
        used[: self.base_hidden] = True
        for name in self.tensor_names():
            axes = self.axes(name)
            if "hidden" not in axes or is_residual_norm(name):
                continue
            if self._tensors[name].get("fill", 0.0):
                return None
            index, value = self.sparse(name)
            used[index[axes.index("hidden")][value != 0]] = True
        free = (~used).nonzero()
        return int(free[-1]) if len(free) else None

    def machine_fields(self) -> dict[str, Any]:
        """The machine's configuration as JSON."""
        return dataclasses.asdict(self.machine)
