"""A compiled circuit on disk: sparse tensors and a manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from qgpu_isa.errors import OutputError
from qgpu_isa.machine_config import WORD_BITS
from qgpu_isa.new_folder import FolderKind

from qgpu_circuit.layers import CircuitPlan
from qgpu_circuit.layers_to_weights import emit_tensors
from qgpu_circuit.signals import Machine

FORMAT = 2
TENSORS = "circuit.safetensors"
MANIFEST = "circuit.json"
CIRCUIT_FOLDER = FolderKind("circuit", MANIFEST)


def memory_map(m: Machine, plan: CircuitPlan) -> dict[str, Any]:
    """Where the memory's words are: per bank, [layer, value head] of each group of rows."""
    where = {
        head.name: [layer, index * m.shape.values_per_key]
        for layer, content in enumerate(plan.layers)
        for index, head in enumerate(content.heads)
    }
    return {
        "columns": WORD_BITS,
        "rows_per_head": m.shape.rows,
        "banks": [[where[path] for path in bank] for bank in m.memory_heads],
    }


def write_circuit(
    m: Machine,
    plan: CircuitPlan,
    folder: Path,
    progress: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """Writes the circuit's files into a folder.

    Returns:
        the manifest.
    """
    from safetensors import SafetensorError, TensorSpec, serialize_file

    arrays: list[np.ndarray] = []
    specs: dict[str, TensorSpec] = {}
    shapes: dict[str, Any] = {}
    digest = hashlib.sha256()
    for name, tensor in emit_tensors(m, plan):
        progress(name)
        index, bits = tensor.arrays()
        for part, array, dtype in (("index", index, "int32"), ("value", bits, "bfloat16")):
            arrays.append(array)
            specs[f"{name}.{part}"] = TensorSpec(
                dtype=dtype,
                shape=array.shape,
                data_ptr=array.ctypes.data,
                data_len=array.nbytes,
            )
        shapes[name] = {"shape": list(tensor.shape), "fill": tensor.fill}
        digest.update(f"{name}{tensor.shape}{tensor.fill}".encode())
        digest.update(index.tobytes())
        digest.update(bits.tobytes())
    try:
        serialize_file(specs, folder / TENSORS)
    except SafetensorError as error:
        raise OutputError(f"cannot write {folder / TENSORS}: {error}") from None
    manifest = {
        "format": FORMAT,
        "machine": asdict(m.config),
        "shape": m.shape.manifest() | {"num_layers": len(plan.layers)},
        "residual": m.shape.residual.as_dict(),
        "tensors": shapes,
        "memory": memory_map(m, plan),
        "digest": digest.hexdigest(),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest
