"""Runs emitted weights on tokens in numpy, rounding to bf16 where a Qwen3.5 layer does.

A reading of transformers' `Qwen3_5DecoderLayer` that is independent of torch, for one token at a
time: what the tensors compute, next to what the netlist means (`simulate.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from qgpu_isa.errors import QgpuError

from qgpu_circuit.circuit_weights import FORMAT, MANIFEST, TENSORS
from qgpu_circuit.numerics import round_bf16

Vector = np.ndarray[Any, Any]
"""float32, one dimension, every element a bf16 number unless said otherwise."""


class CircuitFileError(QgpuError):
    """A folder that holds no readable circuit."""


def silu(x: Vector) -> Vector:
    """x * sigmoid(x) in fp32, not rounded."""
    with np.errstate(over="ignore"):
        return (x / (1.0 + np.exp(-x, dtype=np.float32))).astype(np.float32)


@dataclass(frozen=True)
class SparseMatrix:
    """A sparse tensor as read from disk: entries sorted by row."""

    shape: tuple[int, ...]
    fill: float
    rows: Vector
    columns: Vector
    values: Vector

    def __matmul__(self, x: Vector) -> Vector:
        out = np.zeros(self.shape[0], dtype=np.float64)
        np.add.at(out, self.rows, self.values.astype(np.float64) * x[self.columns])
        return round_bf16(out.astype(np.float32))

    def vector(self) -> Vector:
        """A one-dimensional tensor, dense."""
        out = np.full(self.shape, self.fill, dtype=np.float32)
        out[self.rows] = self.values
        return out

    def dense(self) -> Vector:
        """A two-dimensional tensor, dense."""
        out = np.full(self.shape, self.fill, dtype=np.float32)
        out[self.rows, self.columns] = self.values
        return out


def read_tensors(folder: Path) -> tuple[dict[str, Any], Callable[[str], SparseMatrix]]:
    """The manifest of a circuit folder and a reader of its tensors.

    Raises:
        CircuitFileError: the folder is not a circuit of this format, or is damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        if manifest["format"] != FORMAT:
            raise CircuitFileError(f"{folder}: format {manifest['format']}, expected {FORMAT}")
        file = safe_open(folder / TENSORS, framework="numpy")
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise CircuitFileError(f"{folder} holds no readable circuit: {error}") from None

    def read(name: str) -> SparseMatrix:
        entry = manifest["tensors"][name]
        index: Vector = file.get_tensor(f"{name}.index")  # type: ignore[no-untyped-call]
        raw = _raw_bf16(folder / TENSORS, f"{name}.value")
        columns = index[1] if len(index) > 1 else np.zeros(index.shape[1], dtype=np.int32)
        return SparseMatrix(tuple(entry["shape"]), entry["fill"], index[0], columns, raw)

    return manifest, read


def _raw_bf16(path: Path, name: str) -> Vector:
    """A bf16 tensor of a safetensors file as float32 (numpy has no bf16)."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        begin, end = json.loads(file.read(size))[name]["data_offsets"]
        file.seek(8 + size + begin)
        bits = np.frombuffer(file.read(end - begin), dtype=np.uint16)
    result: Vector = (bits.astype(np.uint32) << 16).view(np.float32)
    return result


class Layer:
    """One emitted layer with its recurrent state."""

    def __init__(self, shape: dict[str, Any], read: Callable[[str], SparseMatrix]) -> None:
        self.heads = shape["linear_num_value_heads"]
        self.key_heads = shape["linear_num_key_heads"]
        self.rows = shape["linear_key_head_dim"]
        self.columns = shape["linear_value_head_dim"]
        self.eps = shape["rms_norm_eps"]
        self.norms = [read(f"{n}_layernorm.weight").vector() for n in ("input", "post_attention")]
        self.qkv, self.z, self.b, self.out = (
            read(f"linear_attn.{n}.weight")
            for n in ("in_proj_qkv", "in_proj_z", "in_proj_b", "out_proj")
        )
        self.conv = read("linear_attn.conv1d.weight").dense()
        self.gate, self.up, self.down = (
            read(f"mlp.{n}_proj.weight") for n in ("gate", "up", "down")
        )
        self.state = np.zeros((self.heads, self.rows, self.columns), dtype=np.float32)
        self.window = np.zeros_like(self.conv)

    def __call__(self, x: Vector) -> Vector:
        x = round_bf16(x + self._mixer(self._norm(x, self.norms[0])))
        normed = self._norm(x, self.norms[1])
        inner = round_bf16(round_bf16(silu(self.gate @ normed)) * (self.up @ normed))
        return round_bf16(x + (self.down @ inner))

    def _norm(self, x: Vector, weight: Vector) -> Vector:
        scale = 1.0 / np.sqrt(np.mean(x * x, dtype=np.float32) + self.eps)
        return round_bf16(x * np.float32(scale) * (1.0 + weight))

    def _mixer(self, x: Vector) -> Vector:
        self.window = np.roll(self.window, -1, axis=1)
        self.window[:, -1] = self.qkv @ x
        mixed = round_bf16(silu(round_bf16((self.window * self.conv).sum(axis=1))))
        keys = self.key_heads * self.rows
        query, key = (
            _unit(mixed[i * keys : (i + 1) * keys].reshape(self.key_heads, self.rows)).repeat(
                self.heads // self.key_heads, axis=0
            )
            for i in (0, 1)
        )
        value = mixed[2 * keys :].reshape(self.heads, self.columns)
        with np.errstate(over="ignore"):
            beta = round_bf16(1.0 / (1.0 + np.exp(-(self.b @ x), dtype=np.float32)))
        held = np.einsum("hr,hrc->hc", key, self.state)
        self.state += np.einsum("hr,hc->hrc", key, (value - held) * beta[:, None])
        read = np.einsum("hr,hrc->hc", query / np.sqrt(np.float32(self.rows)), self.state)
        read = round_bf16(read)
        norm = 1.0 / np.sqrt((read * read).mean(axis=1, keepdims=True) + self.eps)
        gated = round_bf16(read * norm) * silu((self.z @ x).reshape(read.shape))
        return self.out @ round_bf16(gated).reshape(-1)


def _unit(x: Vector) -> Vector:
    unit: Vector = x / np.sqrt((x * x).sum(axis=1, keepdims=True) + 1e-6)
    return unit


class Evaluator:
    """An emitted circuit, fed token id by token id (ids start at 0)."""

    def __init__(self, folder: Path) -> None:
        self.manifest, read = read_tensors(folder)
        shape = self.manifest["shape"]
        self.layers = [
            Layer(shape, lambda name, i=i: read(f"layers.{i}.{name}"))  # type: ignore[misc]
            for i in range(shape["num_layers"])
        ]
        self.embedding = read("embed_tokens.weight")
        self.final_norm = read("norm.weight").vector()
        self.residual: list[Vector] = []

    def step(self, token_id: int) -> tuple[int, float]:
        """Feeds a token.

        Returns:
            the token with the largest logit, and its distance from the second in bf16 steps.
        """
        chosen = self.embedding.rows == token_id
        x = np.zeros(self.embedding.shape[1], dtype=np.float32)
        x[self.embedding.columns[chosen]] = self.embedding.values[chosen]
        self.residual = [x]
        for layer in self.layers:
            x = layer(x)
            self.residual.append(x)
        logits = self.embedding @ self.layers[-1]._norm(x, self.final_norm)
        second, best = np.argsort(logits)[-2:]
        step = 2.0 ** (np.floor(np.log2(abs(logits[best]))) - 7)
        return int(best), float((logits[best] - logits[second]) / step)
