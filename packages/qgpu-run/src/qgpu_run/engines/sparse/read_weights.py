"""Reads a merged checkpoint and keeps what can act on GPU tokens, with a check for all it leaves.

Nothing is assumed about what the circuit or the merge wrote: that the rest cannot matter is
computed from the weights, and a checkpoint for which it does not hold is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from qgpu_run.engines.sparse.arrays import Array, Weights
from qgpu_run.engines.sparse.pack_layers import HeadShape, Layer, Rows, pack_layers
from qgpu_run.errors import ModelError
from qgpu_run.load_model import ModelManifest

LINEAR = "linear_attention"
LAYER_MATRICES = (
    "linear_attn.in_proj_qkv",
    "linear_attn.in_proj_z",
    "linear_attn.in_proj_b",
    "linear_attn.out_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)
"""In the order of `arrays.QKV` to `arrays.DOWN`."""

READERS = ("q_proj", "k_proj", "v_proj", "in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a")
"""Projections that read the residual stream, beside those of the MLP."""

WRITERS = ("out_proj", "o_proj", "down_proj")
"""Projections that write it."""

Progress = Callable[[int, int], None]
"""(layers read, layers in all)."""


class CheckpointReader:
    """The tensors of a folder of safetensors, as float32 or by their entries."""

    def __init__(self, folder: Path) -> None:
        index = folder / "model.safetensors.index.json"
        single = folder / "model.safetensors"
        self._headers: dict[str, tuple[Path, int, dict[str, Any]]] = {}
        try:
            if index.exists():
                names = set(json.loads(index.read_text())["weight_map"].values())
                files = [folder / name for name in sorted(names)]
            else:
                files = [single]
            for file in files:
                self._read_header(file)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"{folder} cannot be read: {error}") from None
        self.folder = folder

    def _read_header(self, file: Path) -> None:
        with file.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(size))
        for name, entry in header.items():
            if name != "__metadata__":
                self._headers[name] = (file, 8 + size, entry)

    def __contains__(self, name: str) -> bool:
        return name in self._headers

    def _bits(self, name: str) -> Array:
        """The tensor's bf16 bit patterns, mapped from disk."""
        if name not in self._headers:
            raise ModelError(f"{self.folder} has no tensor {name}")
        file, base, entry = self._headers[name]
        if entry["dtype"] != "BF16":
            raise ModelError(f"{file}: {name} is {entry['dtype']}; the sparse engine reads BF16")
        shape = tuple(entry["shape"])
        begin, end = entry["data_offsets"]
        if file.stat().st_size < base + end:
            raise ModelError(f"{file} is truncated")
        return np.memmap(file, np.uint16, "r", base + begin, shape)

    def dense(self, name: str) -> Array:
        """All of a tensor, float32."""
        return _to_float(np.asarray(self._bits(name)))

    def entries(self, name: str, first_row: int = 0) -> Rows:
        """The entries of a matrix from a row on."""
        bits = self._bits(name)[first_row:]
        flat = np.ascontiguousarray(bits).reshape(-1)
        # Whole words first: most are zero.
        words = flat[: len(flat) // 4 * 4].view(np.uint64)
        near = np.flatnonzero(words)
        at = (near[:, None] * 4 + np.arange(4)).reshape(-1)
        rest = np.arange(len(words) * 4, len(flat))
        at = np.concatenate([at, rest])
        at = at[flat[at] & 0x7FFF != 0]
        rows, columns = np.divmod(at, bits.shape[1])
        return Rows(rows, columns, _to_float(flat[at]))


def _to_float(bits: Array) -> Array:
    result: Array = (bits.astype(np.uint32) << 16).view(np.float32)
    return result


def read_weights(manifest: ModelManifest, progress: Progress | None = None) -> Weights:
    """The weights that act on GPU tokens.

    Raises:
        ModelError: the checkpoint is damaged, or some part of it cannot be shown not to matter.
    """
    try:
        raw = json.loads((manifest.path / "config.json").read_text())
        return _Reading(manifest, raw, progress or (lambda *_: None)).read()
    except KeyError as error:
        raise ModelError(f"{manifest.path}: config.json lacks {error}") from None


class _Reading:
    def __init__(self, manifest: ModelManifest, config: dict[str, Any], progress: Progress) -> None:
        self.file = CheckpointReader(manifest.path)
        self.config, self.progress = config, progress
        self.offset = manifest.token_offset
        self.path = manifest.path
        self.types: list[str] = config["layer_types"]
        self.hidden = int(config["hidden_size"])
        self.heads = int(config["linear_num_key_heads"])
        if config["linear_num_value_heads"] != self.heads:
            raise ModelError(f"{self.path}: the sparse engine needs as many value as key heads")

    def read(self) -> Weights:
        embedding = self.file.entries("model.embed_tokens.weight", self.offset)
        layers = [self._matrices(i) for i in range(len(self.types))]
        acting = self._acting_layers(embedding, layers)
        code, logits = self._logits()
        rows, columns = (int(self.config[f"linear_{k}_head_dim"]) for k in ("key", "value"))
        shape = HeadShape(self.heads, rows, columns)
        kept = [self._layer(index, layers[index]) for index in range(acting)]
        packed, numbers = pack_layers(kept, shape)
        tokens = logits.shape[1]
        return Weights(
            **packed,
            gains=self._gains(acting),
            token_start=np.searchsorted(embedding.rows, np.arange(tokens + 1)),
            token_column=embedding.columns,
            token_value=embedding.values,
            final_gain=1 + self.file.dense("model.norm.weight")[code],
            code=code,
            logits=logits,
            signs=_signs(logits),
            sizes=np.array([self.hidden, rows, columns, numbers]),
            epsilon=np.array([self.config["rms_norm_eps"]], dtype=np.float32),
        )

    def _matrices(self, layer: int) -> dict[str, Rows]:
        """The matrices of a layer that read or write the residual stream."""
        self.progress(layer + 1, len(self.types))
        prefix = f"model.layers.{layer}."
        kinds = [f"linear_attn.{n}" for n in (*READERS, "out_proj")]
        kinds += [f"self_attn.{n}" for n in (*READERS, "o_proj")]
        kinds += [f"mlp.{n}_proj" for n in ("gate", "up", "down")]
        found = {k: f"{prefix}{k}.weight" for k in kinds if f"{prefix}{k}.weight" in self.file}
        biases = [f"{prefix}{k}.bias" for k in kinds if f"{prefix}{k}.bias" in self.file]
        if biases:
            raise ModelError(f"{self.path} has {biases[0]}; the sparse engine knows no biases")
        return {kind: self.file.entries(name) for kind, name in found.items()}

    def _layer(self, index: int, matrices: dict[str, Rows]) -> Layer:
        """A layer on the dimensions that can be other than 0 on a GPU token."""
        kept = []
        for kind in LAYER_MATRICES:
            part = matrices[kind]
            kept.append(part if kind.endswith(WRITERS) else part.take(self.live[part.columns]))
        prefix = f"model.layers.{index}.linear_attn."
        taps = self.file.dense(prefix + "conv1d.weight").reshape(-1, 4)
        return Layer(tuple(kept), taps, self.file.dense(prefix + "norm.weight"))

    def _gains(self, layers: int) -> Array:
        names = ("input_layernorm", "post_attention_layernorm")
        return np.stack(
            [
                1 + self.file.dense(f"model.layers.{index}.{name}.weight")
                for index in range(layers)
                for name in names
            ]
        )

    def _acting_layers(self, embedding: Rows, layers: list[dict[str, Rows]]) -> int:
        """How many layers, from the first, can change anything on a GPU token.

        A layer does nothing if it reads only dimensions that are 0: its projections are 0, so its
        attention averages zeros, its DeltaNet reads zeros, and its neurons are silu(0) * 0.
        """
        live = np.zeros(self.hidden, dtype=bool)
        live[embedding.columns] = True
        acting = 0
        for index, matrices in enumerate(layers):
            reads = [r for kind, r in matrices.items() if not kind.endswith(WRITERS)]
            if any(live[r.columns].any() for r in reads):
                acting = index + 1
                for kind, r in matrices.items():
                    if kind.endswith(WRITERS):
                        live[r.rows] = True
        for index, kind in enumerate(self.types[:acting]):
            if kind != LINEAR:
                raise ModelError(f"{self.path}: layer {index} is {kind} and acts on GPU tokens")
        for index in range(acting):
            self._check_no_decay(index, layers[index])
        self.live = live
        return acting

    def _check_no_decay(self, layer: int, matrices: dict[str, Rows]) -> None:
        """The state keeps everything: exp(-exp(A_log) * softplus(dt_bias)) is 1 in fp32."""
        prefix = f"model.layers.{layer}.linear_attn."
        rate = np.exp(self.file.dense(prefix + "A_log"), dtype=np.float32)
        step = np.log1p(np.exp(self.file.dense(prefix + "dt_bias"), dtype=np.float32))
        decay = np.exp(-rate * step, dtype=np.float32)
        if len(matrices["linear_attn.in_proj_a"].rows) or (decay != 1).any():
            raise ModelError(f"{self.path}: the state of layer {layer} decays")

    def _logits(self) -> tuple[Array, Array]:
        """Dimensions that logits of GPU tokens read, and the output head on them, transposed.

        Text tokens' logits must be 0 on a GPU token: they may only read dimensions that are.
        """
        head = self.file.entries("lm_head.weight")
        text = head.rows < self.offset
        if self.live[head.columns[text]].any():
            raise ModelError(f"{self.path}: logits of text tokens read dimensions of the circuit")
        read = ~text & self.live[head.columns]
        code = np.unique(head.columns[read])
        logits = np.zeros((len(code), int(self.config["vocab_size"]) - self.offset), np.uint16)
        logits[np.searchsorted(code, head.columns[read]), head.rows[read] - self.offset] = (
            head.values[read].view(np.uint32) >> 16
        )
        return code, logits


BF16_ONE, BF16_MINUS_ONE = 0x3F80, 0xBF80


def _signs(logits: Array) -> Array:
    """`Weights.signs` of logit weights given as bit patterns."""
    if len(logits) > 32 or not np.isin(logits, (BF16_ONE, BF16_MINUS_ONE)).all():
        return np.zeros(0, dtype=np.uint32)
    bits = np.uint32(1) << np.arange(len(logits), dtype=np.uint32)
    signs: Array = ((logits == BF16_ONE) * bits[:, None]).sum(axis=0, dtype=np.uint32)
    return signs
