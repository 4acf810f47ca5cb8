"""Makes the tensors of the merged checkpoint from those of circuit and base."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from qgpu_merge.finite_weights import finite, finite_rows, finite_tensor
from qgpu_merge.qwen35_layout import (
    EMBEDDING,
    FINAL_NORM,
    GROWN_AXES,
    HEAD,
    VISION_OUT,
    Axes,
    Qwen35Shape,
    is_residual_norm,
    norm_before,
    row_ranges,
)
from qgpu_merge.read_checkpoint import Checkpoint
from qgpu_merge.read_circuit import Circuit
from qgpu_merge.widen_residual import Widening, pad

HEAD_MARK = 2.0**-70
"""What marks a text token for the two heads (`qgpu_circuit.numerics.HEAD_GAIN`): its square
vanishes beside any RMS."""

LARGEST_EMBEDDING = 2.0**20
"""Embeddings up to here leave the circuit mute on text, by a margin of 2**16."""

KEPT_DTYPES = {"BF16": torch.bfloat16, "F32": torch.float32, "F16": torch.float32}
"""Stored dtypes of a base, and the dtype in which the merged checkpoint keeps them. F16's range is
too small for the circuit's anchor, and fp32 holds every fp16 number."""

Pieces = Callable[[], Iterator[torch.Tensor]]


class TensorMaker:
    """Builds merged tensors by name.

    Args:
        circuit: the circuit in front.
        base: the model behind it.
        shape: of the merged model.
        widening: how the base is widened.
        tied: whether the merged model's head is its embedding.
    """

    def __init__(
        self,
        circuit: Circuit,
        base: Checkpoint,
        shape: Qwen35Shape,
        widening: Widening,
        *,
        tied: bool,
    ) -> None:
        self.circuit, self.base, self.shape = circuit, base, shape
        self.tied, self.widening = tied, widening

    def task(self, name: str, axes: Axes) -> tuple[torch.dtype, Pieces]:
        """Dtype and maker of a tensor of the language model."""
        if name in (EMBEDDING, HEAD):
            return KEPT_DTYPES[self.base.dtype(name)], lambda: self._vocabulary(name)
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
            dtype = KEPT_DTYPES[self.base.dtype(source)]
        return dtype, lambda: iter([make(source, axes).to(dtype)])

    def vision_task(self, stored: str) -> tuple[tuple[int, ...], torch.dtype, Pieces]:
        """Shape, dtype and maker of a tensor of the vision tower; it marks image embeddings."""
        found = self.base.tensors[stored]
        dtype, size = KEPT_DTYPES[found.dtype], found.shape
        if stored.startswith(VISION_OUT):
            size = (self.circuit.hidden_size, *size[1:])

        def make() -> Iterator[torch.Tensor]:
            where = f"{self.base.folder}: {stored}"
            tensor = finite(self.base.stored_tensor(stored).to(dtype), where)
            if stored.startswith(VISION_OUT):
                tensor = finite(tensor * self.widening.scale, where)
                tensor = pad(tensor, 0, tensor.shape[:1], size[:1])
                if tensor.dim() == 1:
                    self._mark(tensor, EMBEDDING)
            yield tensor

        return size, dtype, make

    def _circuit_tensor(self, name: str, axes: Axes) -> torch.Tensor:
        tensor = self.circuit.tensor(name)
        if "intermediate" not in axes:
            return tensor
        own = (int(self.circuit.sizes["intermediate_size"]),)
        return pad(tensor, axes.index("intermediate"), own, self.shape.segments("intermediate"))

    def _base_tensor(self, name: str, axes: Axes) -> torch.Tensor:
        tensor = finite_tensor(self.base, name)
        if is_residual_norm(name):
            return self.widening.norm(tensor, self.widening.exponents(tensor))
        tensor = self._behind_norm(name, axes, tensor)
        if axes[0] == "hidden":
            tensor = finite(tensor * self.widening.scale, f"{self.base.folder}: {name}, scaled,")
        return self._padded(tensor, axes)

    def _padded(self, tensor: torch.Tensor, axes: Axes) -> torch.Tensor:
        """A tensor of the base with zeros where the merged model has more."""
        for axis, name in enumerate(axes):
            if name in GROWN_AXES:
                segments = self.base.shape.segments(name), self.shape.segments(name)
                tensor = pad(tensor, axis, *segments)
        return tensor

    def _behind_norm(self, name: str, axes: Axes, matrix: torch.Tensor) -> torch.Tensor:
        """The matrix with the powers of two that it takes over from the norm before it."""
        norm = norm_before(name, axes)
        matrix = matrix.to(KEPT_DTYPES[self.base.dtype(name)])
        if norm is None:
            return matrix
        exponents = self.widening.exponents(finite_tensor(self.base, norm))
        return self.widening.behind_norm(name, matrix, exponents)

    def _final_norm(self) -> torch.Tensor:
        stored = finite_tensor(self.base, FINAL_NORM)
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
        dtype = KEPT_DTYPES[self.base.dtype(name)]
        below = LARGEST_EMBEDDING if name == EMBEDDING else None
        for first, last in row_ranges(self.base.shape.axes["vocab"]):
            rows = finite_rows(self.base, name, first, last, below).to(dtype)
            if name == HEAD:
                rows = self._behind_norm(name, axes, rows)
            else:
                rows = rows * self.widening.scale
            rows = self._padded(rows, axes)
            self._mark(rows, name)
            yield rows
        for first, last in row_ranges(self.circuit.vocabulary_size):
            yield self.circuit.rows(EMBEDDING, first, last).to(dtype)

    def _mark(self, rows: torch.Tensor, name: str) -> None:
        """Sets the marks of text in rows (or one row) of embedding or head."""
        marks = self.circuit.marks
        if name == EMBEDDING:
            rows[..., marks["text_gate"]] = self.widening.text_mark
        rows[..., marks["text_head"]] = HEAD_MARK
        rows[..., marks["gpu_head"]] = -HEAD_MARK
