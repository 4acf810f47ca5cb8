"""Makes the tensors of the merged checkpoint from those of circuit and base."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import torch

from qgpu_merge.errors import MergeError
from qgpu_merge.qwen35_layout import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    VISION_OUT,
    Axes,
    Qwen35Shape,
    is_residual_norm,
    norm_before,
)
from qgpu_merge.read_checkpoint import Checkpoint
from qgpu_merge.read_circuit import Circuit
from qgpu_merge.residual_scale import choose_scale
from qgpu_merge.widen_residual import Widening, pad

HEAD_MARK = 2.0**-70
"""What marks a text token for the two heads (`qgpu_circuit.numerics.HEAD_GAIN`): its square
vanishes beside any RMS."""

LARGEST_EMBEDDING = 2.0**20
"""Embeddings up to here leave the circuit mute on text, by a margin of 2**16."""

ROWS_AT_A_TIME = 8192

Pieces = Callable[[], Iterator[torch.Tensor]]


class TensorMaker:
    """Builds merged tensors by name.

    Args:
        circuit: the circuit in front.
        base: the model behind it.
        shape: of the merged model.
        dtypes: stored dtype of a base tensor -> dtype that it is kept in.
        tied: whether the merged model's head is its embedding.
    """

    def __init__(
        self,
        circuit: Circuit,
        base: Checkpoint,
        shape: Qwen35Shape,
        dtypes: Mapping[str, torch.dtype],
        *,
        tied: bool,
    ) -> None:
        self.circuit, self.base, self.shape, self.dtypes = circuit, base, shape, dtypes
        self.tied = tied
        epsilon = float(circuit.sizes["rms_norm_eps"])
        plain = Widening(circuit.base_hidden, circuit.hidden_size, epsilon)
        scale = plain.exact_scale
        if tied:
            scale = choose_scale(plain, self._embedding(), base.tensor(FINAL_NORM))
        self.widening = replace(plain, scale=scale)

    def _embedding(self) -> Iterator[torch.Tensor]:
        """The base's embedding, some rows at a time."""
        count = self.base.shape.axes["vocab"]
        for first in range(0, count, ROWS_AT_A_TIME):
            yield self.base.rows(EMBEDDING, first, min(first + ROWS_AT_A_TIME, count))

    def task(self, name: str, axes: Axes) -> tuple[torch.dtype, Pieces]:
        """Dtype and maker of a tensor of the language model."""
        if name in (EMBEDDING, HEAD):
            return self.dtypes[self.base.dtype(name)], lambda: self._vocabulary(name)
        if name == FINAL_NORM:
            return torch.float32, lambda: iter([self._final_norm()])
        _, number, stem = name.split(".", 2)
        layer = int(number) - self.circuit.num_layers
        source = name if layer < 0 else f"layers.{layer}.{stem}"
        make = self._circuit_tensor if layer < 0 else self._base_tensor
        dtype = torch.bfloat16
        if is_residual_norm(name):
            # transformers casts them as asked; a loader that keeps fp32 loses nothing.
            dtype = torch.float32
        elif layer >= 0:
            dtype = self.dtypes[self.base.dtype(source)]
        return dtype, lambda: iter([make(source, axes).to(dtype)])

    def vision_task(self, stored: str) -> tuple[tuple[int, ...], torch.dtype, Pieces]:
        """Shape, dtype and maker of a tensor of the vision tower; it marks image embeddings."""
        dtype = self.dtypes[self.base.stored_dtype(stored)]
        tensor = self.base.stored_tensor(stored)
        size = tuple(tensor.shape)
        if stored.startswith(VISION_OUT):
            size = (self.circuit.hidden_size, *size[1:])

        def make() -> Iterator[torch.Tensor]:
            found = self.base.stored_tensor(stored).to(dtype)
            if stored.startswith(VISION_OUT):
                found = found * self.widening.scale
                axes = ("hidden", "inner")[: found.dim()]
                found = pad(found, axes, "hidden", self.circuit.hidden_size)
                if found.dim() == 1:
                    self._mark(found, EMBEDDING)
            yield found

        return size, dtype, make

    def _circuit_tensor(self, name: str, axes: Axes) -> torch.Tensor:
        return pad(self.circuit.tensor(name), axes, "intermediate", self.shape.axes["intermediate"])

    def _base_tensor(self, name: str, axes: Axes) -> torch.Tensor:
        tensor = self.base.tensor(name)
        if is_residual_norm(name):
            return self.widening.norm(tensor, self.widening.exponents(tensor))
        tensor = self._behind_norm(name, axes, tensor)
        if axes[0] == "hidden":
            tensor = tensor * self.widening.scale
        tensor = pad(tensor, axes, "hidden", self.circuit.hidden_size)
        return pad(tensor, axes, "intermediate", self.shape.axes["intermediate"])

    def _behind_norm(self, name: str, axes: Axes, matrix: torch.Tensor) -> torch.Tensor:
        """The matrix with the powers of two that it takes over from the norm before it."""
        norm = norm_before(name, axes)
        matrix = matrix.to(self.dtypes[self.base.dtype(name)])
        if norm is None:
            return matrix
        exponents = self.widening.exponents(self.base.tensor(norm))
        return self.widening.behind_norm(name, matrix, exponents)

    def _final_norm(self) -> torch.Tensor:
        stored = self.base.tensor(FINAL_NORM)
        if self.tied:
            # A head that is the embedding too cannot take anything over, and is scaled with it.
            out = self.widening.norm(stored, None, divide=self.widening.scale)
        else:
            out = self.widening.norm(stored, self.widening.exponents(stored))
        own = self.circuit.tensor(FINAL_NORM)
        out[self.circuit.base_hidden :] = own[self.circuit.base_hidden :].float()
        return out

    def _vocabulary(self, name: str) -> Iterator[torch.Tensor]:
        """Rows of embedding or head: the text's, marked, and the GPU tokens'."""
        axes = ("vocab", "hidden")
        dtype = self.dtypes[self.base.dtype(name)]
        count = self.base.shape.axes["vocab"]
        for first in range(0, count, ROWS_AT_A_TIME):
            rows = self.base.rows(name, first, min(first + ROWS_AT_A_TIME, count)).to(dtype)
            if name == EMBEDDING and not bool((rows.abs() < LARGEST_EMBEDDING).all()):
                raise MergeError(
                    f"{self.base.folder}: {EMBEDDING} holds a number that is not finite or beyond "
                    f"{LARGEST_EMBEDDING:.0f}; the circuit could act on such a token"
                )
            if name == HEAD:
                rows = self._behind_norm(name, axes, rows)
            else:
                rows = rows * self.widening.scale
            rows = pad(rows, axes, "hidden", self.circuit.hidden_size)
            self._mark(rows, name)
            yield rows
        count = self.circuit.vocabulary_size
        for first in range(0, count, ROWS_AT_A_TIME):
            rows = self.circuit.rows(EMBEDDING, first, min(first + ROWS_AT_A_TIME, count))
            yield rows.to(dtype)

    def _mark(self, rows: torch.Tensor, name: str) -> None:
        """Sets the marks of text in rows (or one row) of embedding or head."""
        marks = self.circuit.marks
        if name == EMBEDDING:
            rows[..., marks["text_gate"]] = self.widening.text_mark
        rows[..., marks["text_head"]] = HEAD_MARK
        rows[..., marks["gpu_head"]] = -HEAD_MARK
