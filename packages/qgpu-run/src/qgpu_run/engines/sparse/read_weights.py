"""Reads a merged checkpoint and keeps what can act on GPU tokens, with a check for all it leaves.

Nothing is assumed about what the circuit or the merge wrote: that the rest cannot matter is
computed from the weights, and a checkpoint for which it does not hold is refused.

- *Logits of GPU tokens* read a few dimensions. The last layer that writes one of them is the last
  that matters; the layers behind it (the base's), whose weights are finite, can only change the RMS
  that divides all logits.
- *Dimensions* that are 0 on every GPU token, since neither their embeddings nor a layer that
  matters writes them, take what reads them along.
- *Text tokens* cannot win on a GPU token: all of them read one dimension that holds a number so far
  below 0 that nothing else can make up for it (`text_limit`), unless the base's layers made the RMS
  a thousand times what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from qgpu_isa.checked_json import load_object
from qgpu_isa.qwen35_config import LINEAR, check_text_config

from qgpu_run.engines.sparse.arrays import Array, Weights
from qgpu_run.engines.sparse.checkpoint_reader import CheckpointReader
from qgpu_run.engines.sparse.pack_layers import HeadShape, Layer, Rows, pack_layers
from qgpu_run.errors import ModelError
from qgpu_run.load_model import ModelManifest

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

DECAY = "linear_attn.in_proj_a"

HEAD = "lm_head.weight"

WRITERS = ("linear_attn.out_proj", "self_attn.o_proj", "mlp.down_proj")
"""Matrices that write the residual stream."""

RMS_ROOM = 2.0**10
"""How many times larger the base's layers may make the RMS of a GPU token."""

Progress = Callable[[int, int], None]
"""(layers read, layers in all)."""


def read_weights(manifest: ModelManifest, progress: Progress | None = None) -> Weights:
    """The weights that act on GPU tokens.

    Raises:
        ModelError: the checkpoint is damaged, or some part of it cannot be shown not to matter.
    """
    raw = load_object(manifest.path / "config.json", ModelError)
    return _Reading(manifest, raw, progress or (lambda *_: None)).read()


class _Reading:
    def __init__(self, manifest: ModelManifest, config: dict[str, Any], progress: Progress) -> None:
        self.file = CheckpointReader(manifest.path)
        self.config = check_text_config(config, str(manifest.path), ModelError)
        self.progress = progress
        self.offset = manifest.token_offset
        self.path = manifest.path
        self.prefix = self.file.prefix
        self.embedding_name = f"{self.prefix}embed_tokens.weight"
        tied = self.config["tie_word_embeddings"]
        if tied and HEAD in self.file:
            raise ModelError(f"{self.path} has a {HEAD}, but its config says that there is none")
        self.head_name = self.embedding_name if tied else HEAD
        self.types: list[str] = self.config["layer_types"]
        self.hidden = int(self.config["hidden_size"])
        self.rows, self.columns, self.keys, self.values = (
            int(self.config[f"linear_{name}"])
            for name in ("key_head_dim", "value_head_dim", "num_key_heads", "num_value_heads")
        )
        for name in (self.embedding_name, self.head_name):
            self.file.expect(name, self.config["vocab_size"], self.hidden)
        self.file.expect(f"{self.prefix}norm.weight", self.hidden)

    def read(self) -> Weights:
        gain = 1 + self.file.dense(f"{self.prefix}norm.weight")
        self.passed = gain != 0
        head = self.file.entries(self.head_name, self.offset)
        head = head.take(gain[head.columns] != 0)
        alike, largest = self.file.columns(self.head_name, self.offset)
        text = self.file.dense(self.head_name, 0, 1)[0]
        code, logits, shifting = self._logits(head, alike, text)
        read = np.concatenate([code, shifting])
        acting = self._acting_layers(read)
        layers = [self._matrices(i) for i in range(acting)]
        self._check_rest(acting)
        embedding = self.file.entries(self.embedding_name, self.offset)
        self.live = self._live_dimensions(embedding, layers)
        shape = HeadShape(self.keys, self.rows, self.columns, self.values // self.keys)
        kept = [self._layer(index, layers[index]) for index in range(acting)]
        packed, numbers = pack_layers(kept, shape)
        tokens = logits.shape[1]
        shifts, text_limit = self._text_shifts(gain, code, shifting, head, text, largest)
        return Weights(
            **packed,
            gains=self._gains(acting),
            token_start=np.searchsorted(embedding.rows, np.arange(tokens + 1)),
            token_column=embedding.columns,
            token_value=embedding.values,
            final_gain=gain[read],
            code=read,
            logits=logits,
            shifts=shifts,
            text_limit=np.array([text_limit], dtype=np.float32),
            signs=_signs(logits),
            sizes=np.array([self.hidden, self.rows, self.columns, numbers]),
            epsilon=np.array([self.config["rms_norm_eps"]], dtype=np.float32),
        )

    def _name(self, layer: int, kind: str) -> str:
        return f"{self.prefix}layers.{layer}.{kind}.weight"

    def _logits(self, head: Rows, alike: Array, text: Array) -> tuple[Array, Array, Array]:
        """What logits of GPU tokens read.

        Args:
            head: their rows of the output head.
            alike: dimensions that all text tokens' logits read alike.
            text: the first text token's row of the output head.

        Returns:
            the dimensions that tell GPU tokens apart; the output head on them, transposed, as bit
            patterns; dimensions that all GPU tokens read alike and all text tokens too.
        """
        tokens = int(self.config["vocab_size"]) - self.offset
        dense = np.zeros((self.hidden, tokens), dtype=np.uint16)
        dense[head.columns, head.rows] = head.values.view(np.uint32) >> 16
        differs = (dense != dense[:, :1]).any(axis=1)
        read = (dense[:, 0] & 0x7FFF != 0) | (text != 0)
        if ((dense[:, 0] & 0x7FFF != 0) & ~differs & ~alike).any():
            raise ModelError(f"{self.path}: logits of GPU tokens read what text tokens' do too")
        code = np.flatnonzero(differs)
        if not (alike & (text == 0))[code].all():
            raise ModelError(f"{self.path}: logits of text tokens read the code of GPU tokens")
        return code, dense[code], np.flatnonzero(alike & read & ~differs & self.passed)

    def _acting_layers(self, read: Array) -> int:
        """How many layers, from the first, there are up to the last that writes one of `read`."""
        acting = 0
        for index in range(len(self.types)):
            names = [self._name(index, kind) for kind in WRITERS]
            if any(self.file.has_rows(name, read) for name in names if name in self.file):
                acting = index + 1
        for index, kind in enumerate(self.types[:acting]):
            if kind != LINEAR:
                raise ModelError(
                    f"{self.path}: layer {index} is {kind} and stands among the GPU's layers"
                )
        return acting

    def _matrices(self, layer: int) -> dict[str, Rows]:
        """The matrices of a layer that read or write the residual stream."""
        self.progress(layer + 1, len(self.types))
        biases = [f"{self.prefix}layers.{layer}.{kind}.bias" for kind in LAYER_MATRICES]
        biases = [name for name in biases if name in self.file]
        if biases:
            raise ModelError(f"{self.path} has {biases[0]}; the sparse engine knows no biases")
        value = self.values * self.columns
        inner = int(self.config["intermediate_size"])
        sizes = (
            (2 * self.keys * self.rows + value, self.hidden),
            (value, self.hidden),
            (self.values, self.hidden),
            (self.hidden, value),
            (inner, self.hidden),
            (inner, self.hidden),
            (self.hidden, inner),
        )
        found = {}
        for kind, shape in zip(LAYER_MATRICES, sizes, strict=True):
            self.file.expect(self._name(layer, kind), *shape)
            found[kind] = self.file.entries(self._name(layer, kind))
        self._check_no_decay(layer)
        return found

    def _check_rest(self, acting: int) -> None:
        """The layers behind those that matter write nothing that is not finite into the RMS."""
        for index in range(acting, len(self.types)):
            self.progress(index + 1, len(self.types))
            prefix = f"{self.prefix}layers.{index}."
            for name in self.file.tensors:
                if name.startswith(prefix):
                    self.file.check_finite(name)

    def _check_no_decay(self, layer: int) -> None:
        """The state keeps everything: exp(-exp(A_log) * softplus(dt_bias)) is 1 in fp32."""
        prefix = f"{self.prefix}layers.{layer}.linear_attn."
        rate = np.exp(self.file.dense(prefix + "A_log"), dtype=np.float32)
        step = np.log1p(np.exp(self.file.dense(prefix + "dt_bias"), dtype=np.float32))
        decay = np.exp(-rate * step, dtype=np.float32)
        if len(self.file.entries(self._name(layer, DECAY)).rows) or (decay != 1).any():
            raise ModelError(f"{self.path}: the state of layer {layer} decays")

    def _live_dimensions(self, embedding: Rows, layers: list[dict[str, Rows]]) -> Array:
        """Which dimensions can be other than 0 on a GPU token where layers that matter read."""
        live = np.zeros(self.hidden, dtype=bool)
        live[embedding.columns] = True
        for matrices in layers:
            for kind in WRITERS:
                if kind in matrices:
                    live[matrices[kind].rows] = True
        return live

    def _layer(self, index: int, matrices: dict[str, Rows]) -> Layer:
        """A layer on the dimensions that can be other than 0 on a GPU token."""
        kept = []
        for kind in LAYER_MATRICES:
            part = matrices[kind]
            kept.append(part if kind in WRITERS else part.take(self.live[part.columns]))
        prefix = f"{self.prefix}layers.{index}.linear_attn."
        taps = self.file.dense(prefix + "conv1d.weight").reshape(-1, 4)
        return Layer(tuple(kept), taps, self.file.dense(prefix + "norm.weight"))

    def _gains(self, layers: int) -> Array:
        names = ("input_layernorm", "post_attention_layernorm")
        return np.stack(
            [
                1 + self.file.dense(f"{self.prefix}layers.{index}.{name}.weight")
                for index in range(layers)
                for name in names
            ]
        )

    def _text_shifts(
        self, gain: Array, code: Array, shifting: Array, head: Rows, text: Array, largest: Array
    ) -> tuple[Array, float]:
        """What shifts GPU and text tokens' logits alike, and the limit of text's shift.

        A text token's logit is its shift and the sum of weight * gain * x / rms over the other
        dimensions, where |x| / rms is at most sqrt(hidden).
        """
        gpu = np.zeros(self.hidden, dtype=np.float32)
        first = head.rows == 0
        gpu[head.columns[first]] = head.values[first]
        others = np.abs(gain)
        others[code] = others[shifting] = 0.0
        most = float((largest * others).sum()) * self.hidden**0.5
        return np.stack([gpu[shifting], text[shifting]], axis=1), -RMS_ROOM * (most + self.hidden)


BF16_ONE, BF16_MINUS_ONE = 0x3F80, 0xBF80


def _signs(logits: Array) -> Array:
    """`Weights.signs` of logit weights given as bit patterns."""
    if len(logits) > 32 or not np.isin(logits, (BF16_ONE, BF16_MINUS_ONE)).all():
        return np.zeros(0, dtype=np.uint32)
    bits = np.uint32(1) << np.arange(len(logits), dtype=np.uint32)
    signs: Array = ((logits == BF16_ONE) * bits[:, None]).sum(axis=0, dtype=np.uint32)
    return signs
