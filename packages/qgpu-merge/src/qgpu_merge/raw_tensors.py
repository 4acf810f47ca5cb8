"""Tensors that are copied as bytes: the merge does not compute with them, whatever their dtype."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from qgpu_isa.weight_files import StoredTensor

from qgpu_merge.read_checkpoint import raw_pieces


@dataclass(frozen=True)
class RawTask:
    """One tensor to write, as it is in another file."""

    name: str
    source: StoredTensor

    dtype = torch.uint8

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape in its own dtype."""
        return self.source.shape

    @property
    def stored_dtype(self) -> str:
        """Its dtype in a safetensors header."""
        return self.source.dtype

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.source.bytes

    def pieces(self) -> Iterator[torch.Tensor]:
        """Its bytes."""
        for piece in raw_pieces(self.source):
            yield torch.frombuffer(bytearray(piece), dtype=torch.uint8)
