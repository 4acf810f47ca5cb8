"""A circuit folder: sparse tensors and their manifest."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
from qgpu_isa.checked_json import Fields, load_object
from qgpu_isa.qgpu_section import MARKS, read_machine, read_memory_places
from qgpu_isa.qwen35_config import LINEAR
from qgpu_isa.vocabulary import vocabulary
from safetensors import SafetensorError, safe_open

from qgpu_merge.errors import CircuitError
from qgpu_merge.qwen35_layout import (
    EMBEDDING,
    FINAL_NORM,
    LAYER_TENSORS,
    MIXER_TENSORS,
    Axes,
)

MANIFEST = "circuit.json"
TENSORS = "circuit.safetensors"
FORMAT = 2

SHAPE_FIELDS = (
    "hidden_size",
    "intermediate_size",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "num_layers",
    "base_hidden",
)

LARGEST_FILL = 2.0**100

RESIDUAL_FIELDS = ("anchor", "one", *MARKS, "code")


class Circuit:
    """A circuit as `qgpu-circuit emit` writes it.

    Attributes:
        machine: the machine it computes.
        sizes: the manifest's `shape` fields.
        memory: where the words of memory lie.
        residual: the fixed dimensions of the residual stream, by name.
        digest: identity of the circuit.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / MANIFEST
        missing = f"{folder} is not a circuit folder: it has no {MANIFEST}"
        manifest = Fields(load_object(path, CircuitError, missing), str(path), CircuitError)
        if manifest.data.get("format") != FORMAT:
            raise CircuitError(
                f"{path} has format {manifest.data.get('format')!r}; "
                f"this version reads format {FORMAT}"
            )
        self.machine = read_machine(manifest.inner("machine"))
        shape = manifest.inner("shape")
        self.sizes: dict[str, Any] = {name: shape.integer(name) for name in SHAPE_FIELDS}
        self.sizes["rms_norm_eps"] = shape.number("rms_norm_eps", 0.0, 1.0)
        residual = manifest.inner("residual")
        base, width = self.base_hidden, self.hidden_size
        if base >= width:
            shape.fail("base_hidden", f"below hidden_size, which is {width}")
        self.residual = {name: residual.integer(name, base, width - 1) for name in RESIDUAL_FIELDS}
        residual.integer("code", base, width - vocabulary(self.machine).code_bits)
        if len(set(self.residual.values())) < len(self.residual):
            raise CircuitError(f"{residual.where}: two of {', '.join(RESIDUAL_FIELDS)} are one")
        self.memory = read_memory_places(manifest.inner("memory"), self.machine, self.num_layers)
        self.digest = manifest.text("digest")
        self._tensors = manifest.inner("tensors")
        self._last: tuple[str, torch.Tensor, torch.Tensor] | None = None
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

    @property
    def marks(self) -> dict[str, int]:
        """Dimensions of the marks of text tokens."""
        return {name: self.residual[name] for name in MARKS}

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
        return [EMBEDDING, *layers, FINAL_NORM]

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
            if name not in self._tensors or {f"{name}.index", f"{name}.value"} - self._stored:
                raise CircuitError(f"{self.folder}: tensor {name} is missing")
            wanted = tuple(size[axis] for axis in self.axes(name) if axis != "one")
            shape = tuple(self._tensors.inner(name).integers("shape"))
            if shape != wanted:
                raise CircuitError(f"{self.folder}: {name} has shape {shape}, not {wanted}")

    def _open(self) -> Any:
        try:
            return safe_open(self.path, framework="pt")
        except FileNotFoundError:
            raise CircuitError(f"{self.folder} has no {TENSORS}") from None
        except (SafetensorError, OSError) as error:
            raise CircuitError(f"{self.path} is damaged or cut short: {error}") from None

    def sparse(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        """The listed elements of a tensor: index [ndim, nnz] and value [nnz].

        Raises:
            CircuitError: they do not fit the tensor's shape, or are not finite.
        """
        with self._open() as file:
            index, value = file.get_tensor(f"{name}.index"), file.get_tensor(f"{name}.value")
        shape = torch.tensor(self._shape(name)).unsqueeze(1)
        fits = index.dtype in (torch.int32, torch.int64) and value.is_floating_point()
        fits = fits and index.shape == (len(shape), value.numel()) and value.dim() == 1
        if not (fits and bool(((index >= 0) & (index < shape)).all() & value.isfinite().all())):
            raise CircuitError(f"{self.path} is damaged: the elements of {name} do not fit it")
        return index.long(), value

    def _shape(self, name: str) -> list[int]:
        return self._tensors.inner(name).integers("shape")

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor in full, bf16; conv1d.weight has its middle axis of 1."""
        entry = self._tensors.inner(name)
        index, value = self.sparse(name)
        fill = entry.number("fill", -LARGEST_FILL, LARGEST_FILL) if "fill" in entry else 0.0
        dense = torch.full(self._shape(name), fill, dtype=torch.bfloat16)
        dense[tuple(index)] = value.to(torch.bfloat16)
        return dense.unsqueeze(1) if "one" in self.axes(name) else dense

    def rows(self, name: str, first: int, last: int) -> torch.Tensor:
        """Rows `first` to `last` of a matrix, dense, bf16."""
        (rows, columns), value = self._sorted(name)
        low, high = torch.searchsorted(rows, torch.tensor([first, last])).tolist()
        dense = torch.zeros((last - first, self._shape(name)[1]), dtype=torch.bfloat16)
        dense[rows[low:high] - first, columns[low:high]] = value[low:high]
        return dense

    def _sorted(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Like `sparse`, by row; of the last matrix asked for it is kept."""
        if self._last is None or self._last[0] != name:
            index, value = self.sparse(name)
            order = index[0].argsort(stable=True)
            self._last = (name, index[:, order].contiguous(), value[order].to(torch.bfloat16))
        return self._last[1:]

    @property
    def vocabulary_size(self) -> int:
        """Number of GPU tokens."""
        return vocabulary(self.machine).size

    def machine_fields(self) -> dict[str, Any]:
        """The machine's configuration as JSON."""
        return dataclasses.asdict(self.machine)
