"""What the GPU layers add to text, observed bit by bit, and GPU tokens taken through them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from qgpu_merge.check.streamed_model import Precision, StreamedModel

CHUNKS = (64, 1, 3, 100, 1)
"""Lengths of the pieces of a chunked prefill, again and again; 1 is a decoding step."""


@dataclass
class Stream:
    """One sequence on its way through the GPU layers.

    Attributes:
        hidden: residual stream [1, T, hidden].
        text: from which position the tokens are text; they must come out as they went in.
        chunked: whether it goes through a cache in pieces.
    """

    what: str
    hidden: torch.Tensor
    text: int
    chunked: bool = False


def text_streams(
    model: StreamedModel, texts: list[torch.Tensor], gpu: torch.Tensor, dtype: torch.dtype
) -> list[Stream]:
    """Texts [T] whole, in pieces through a cache, and one behind GPU tokens."""
    streams = [Stream("text", model.embed(ids, dtype), 0) for ids in texts]
    streams += [Stream("text in pieces", model.embed(ids, dtype), 0, True) for ids in texts]
    both = torch.cat([gpu, texts[0]])
    streams.append(Stream("text behind GPU tokens", model.embed(both, dtype), len(gpu)))
    return streams


def observe_residual(
    model: StreamedModel,
    layers: int,
    streams: dict[Precision, list[Stream]],
    step: Callable[[], None],
) -> list[str]:
    """Takes streams through the GPU layers, in place, and says where text changed.

    Values are compared, so that -0 counts as 0: nothing downstream can tell them apart.
    """
    before = {p: [s.hidden[:, s.text :].clone() for s in some] for p, some in streams.items()}
    found: dict[tuple[Precision, str], str] = {}
    for index in range(layers):
        loaded = model.load_layer(index, list(streams))
        for precision, some in streams.items():
            for stream, old in zip(some, before[precision], strict=True):
                stream.hidden = _run(model, loaded[precision], index, stream)
                new = stream.hidden[:, stream.text :]
                if not torch.equal(new, old):
                    largest = float((new.double() - old.double()).abs().max())
                    text = f"{stream.what} changes by up to {largest:.2g} in layer {index}"
                    dtype = str(precision.dtype).removeprefix("torch.")
                    found.setdefault((precision, stream.what), f"{text}, {dtype}")
        step()
    return list(found.values())


def _run(model: StreamedModel, layer: object, index: int, stream: Stream) -> torch.Tensor:
    if not stream.chunked:
        return model.run_layer(layer, index, stream.hidden)
    cache = model.new_cache()
    pieces: list[torch.Tensor] = []
    past = 0
    while past < stream.hidden.shape[1]:
        piece = stream.hidden[:, past : past + CHUNKS[len(pieces) % len(CHUNKS)]]
        pieces.append(model.run_layer(layer, index, piece, cache=cache, past=past))
        past += piece.shape[1]
    return torch.cat(pieces, dim=1)
