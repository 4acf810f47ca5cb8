"""Two emitted circuits side by side: what each holds, layer by layer, counted in its tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from qgpu_isa import PROFILES

from qgpu_circuit.compile_profile import ensure_circuit
from qgpu_circuit.evaluate import CircuitFileError, SparseMatrix, read_tensors

TOTALS = ("layers", "hidden_size", "intermediate_size", "neurons", "heads", "nonzeros")


@dataclass(frozen=True)
class LayerSize:
    """What a layer holds: neurons (those that clear included), heads in use, weights."""

    neurons: int
    heads: int
    nonzeros: int


@dataclass(frozen=True)
class CircuitSize:
    """What a circuit holds.

    Attributes:
        name: how it was asked for.
        machine: the parameters of its machine.
        digest: identity of its weights.
        hidden_size, intermediate_size: width of the residual stream, neurons a layer has room for.
        nonzeros: of all tensors, embedding and final norm included.
        per_layer: layer by layer.
    """

    name: str
    machine: dict[str, Any]
    digest: str
    hidden_size: int
    intermediate_size: int
    nonzeros: int
    per_layer: tuple[LayerSize, ...]

    @property
    def layers(self) -> int:
        return len(self.per_layer)

    @property
    def neurons(self) -> int:
        return sum(layer.neurons for layer in self.per_layer)

    @property
    def heads(self) -> int:
        return sum(layer.heads for layer in self.per_layer)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {name: getattr(self, name) for name in TOTALS}


def find_circuit(name: str) -> Path:
    """The folder that a name means: a profile's circuit, compiled if missing, or the folder itself.

    Raises:
        CircuitFileError: it is neither.
    """
    if name in PROFILES:
        return ensure_circuit(name)
    folder = Path(name)
    if not folder.is_dir():
        raise CircuitFileError(f"{name} is neither a folder nor one of: {', '.join(PROFILES)}")
    return folder


def circuit_size(name: str) -> CircuitSize:
    """Counts a circuit's tensors.

    Raises:
        CircuitFileError: there is no circuit of that name, or it is damaged.
    """
    folder = find_circuit(name)
    manifest, read = read_tensors(folder)
    shape = manifest["shape"]
    columns = shape["linear_value_head_dim"]
    values_per_key = shape["linear_num_value_heads"] // shape["linear_num_key_heads"]
    total = 0
    layers = [[0, 0, 0] for _ in range(shape["num_layers"])]
    for tensor in manifest["tensors"]:
        matrix = read(tensor)
        count = _nonzeros(matrix)
        total += count
        parts = tensor.split(".")
        if parts[0] != "layers":
            continue
        layer = layers[int(parts[1])]
        layer[2] += count
        if tensor.endswith("mlp.down_proj.weight"):
            layer[0] = len(_columns(matrix))
        elif tensor.endswith("linear_attn.out_proj.weight"):
            layer[1] = len(np.unique(_columns(matrix) // columns // values_per_key))
    return CircuitSize(
        name,
        manifest["machine"],
        manifest["digest"],
        shape["hidden_size"],
        shape["intermediate_size"],
        total,
        tuple(LayerSize(*layer) for layer in layers),
    )


def _columns(matrix: SparseMatrix) -> np.ndarray[Any, Any]:
    return np.unique(matrix.columns[matrix.values != 0])


def _nonzeros(matrix: SparseMatrix) -> int:
    listed = int(np.count_nonzero(matrix.values))
    return listed + (math.prod(matrix.shape) - len(matrix.values) if matrix.fill else 0)


def difference(first: CircuitSize, second: CircuitSize) -> dict[str, Any]:
    """Both, and the second less the first: totals, parameters of the machine, layers."""
    machines = {
        key: [first.machine.get(key), second.machine.get(key)]
        for key in {**first.machine, **second.machine}
        if first.machine.get(key) != second.machine.get(key)
    }
    none = LayerSize(0, 0, 0)
    layers = []
    for index in range(max(first.layers, second.layers)):
        a = first.per_layer[index] if index < first.layers else none
        b = second.per_layer[index] if index < second.layers else none
        if a != b:
            less = {key: getattr(b, key) - value for key, value in asdict(a).items()}
            layers.append({"layer": index} | less)
    return {
        "first": first.as_dict(),
        "second": second.as_dict(),
        "same_weights": first.digest == second.digest,
        "machine": machines,
        "difference": {name: getattr(second, name) - getattr(first, name) for name in TOTALS},
        "per_layer": layers,
    }


def difference_lines(data: dict[str, Any]) -> Iterator[str]:
    """A difference for people."""
    first, second = data["first"], data["second"]
    yield f"{'':18}{first['name'][-14:]:>15}{second['name'][-14:]:>15}{'difference':>12}"
    for name in TOTALS:
        yield f"{name:18}{first[name]:15,}{second[name]:15,}{data['difference'][name]:+12,}"
    for name, (a, b) in data["machine"].items():
        yield f"{name:18}{a!s:>15}{b!s:>15}"
    if data["per_layer"]:
        yield f"\n{'layer':6}{'neurons':>9}{'heads':>7}{'nonzeros':>12}"
    for row in data["per_layer"]:
        layer, neurons, heads, nonzeros = row.values()
        yield f"{layer:<6}{neurons:+9,}{heads:+7,}{nonzeros:+12,}"
    same = "the same weights" if data["same_weights"] else "different weights"
    yield f"\n{same}; layers that hold equally much are left out"
