"""What the GPU's layers cost on text: seconds a token of the same model run in several ways."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from qgpu_run.errors import ModelError
from qgpu_run.load_model import LoadedModel, load_text_model
from qgpu_run.skip_text_layers import skip_text_layers


@dataclass
class TextSpeed:
    """Median seconds a token; ratios to the fastest way are for the reader.

    Attributes:
        prefill: of a prompt, by way.
        decode: of tokens after it, by way.
        identical: whether skipping gave the plain model's logits, bit for bit.
    """

    prompt: int
    decoded: int
    prefill: dict[str, float]
    decode: dict[str, float]
    identical: bool = True

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with the ratios to the plain merged model."""
        ratios = {
            kind: {way: times["merged"] / seconds for way, seconds in times.items()}
            for kind, times in (("prefill", self.prefill), ("decode", self.decode))
        }
        return asdict(self) | {"merged_over": ratios}

    def lines(self) -> Iterator[str]:
        """A table."""
        yield f"{'':24}{'prefill ms/token':>18}{'decode ms/token':>17}{'decode, merged = 1':>20}"
        for way, seconds in self.decode.items():
            relative = seconds / self.decode["merged"]
            yield (f"{way:24}{1e3 * self.prefill[way]:18.2f}{1e3 * seconds:17.2f}{relative:20.2f}")
        yield "skipping gives the same logits" if self.identical else "SKIPPING CHANGED LOGITS"


def measure_text_speed(
    loaded: LoadedModel,
    original: Path | None = None,
    *,
    prompt: int = 64,
    decode: int = 8,
    rounds: int = 3,
) -> TextSpeed:
    """Times text on a merged model as it is and with `skip_text_layers`, in turn.

    Args:
        loaded: a merged model.
        original: folder of the model that it was merged with, timed beside it.
        prompt: tokens read at once.
        decode: tokens read one by one after them.
        rounds: how often; medians count.

    Raises:
        ModelError: the original cannot be loaded.
    """
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, loaded.token_offset, (1, prompt + decode), generator=generator)
    other = None if original is None else load_text_model(original)
    if other is not None and other.config.vocab_size != loaded.token_offset:
        raise ModelError(f"{original} is not what this model was merged with: other vocabulary")
    times: dict[str, list[tuple[float, float]]] = {}
    identical = True

    def run(way: str, model: Any) -> torch.Tensor:
        seconds, logits = _time(model, tokens, prompt)
        times.setdefault(way, []).append(seconds)
        return logits

    for _ in range(rounds):
        plain = run("merged", loaded.model)
        undo = skip_text_layers(loaded)
        identical &= torch.equal(run("merged, skipping", loaded.model), plain)
        undo()
        if other is not None:
            run("original", other)
    prefill, per_token = (
        {way: median(pair[kind] for pair in found) for way, found in times.items()}
        for kind in (0, 1)
    )
    return TextSpeed(prompt, decode, prefill, per_token, identical)


def _time(
    model: Any, tokens: torch.Tensor, prompt: int, clock: Callable[[], float] = time.perf_counter
) -> tuple[tuple[float, float], torch.Tensor]:
    """Seconds a token of prompt and of decoding; all logits."""
    names = inspect.signature(model.forward).parameters
    name = "cache" if "cache" in names else "past_key_values"
    tokens = tokens.to(model.device)
    with torch.inference_mode():
        started = clock()
        output = model(tokens[:, :prompt], use_cache=True)
        logits = [output.logits.cpu()]
        between = clock()
        for at in range(prompt, tokens.shape[1]):
            output = model(tokens[:, at : at + 1], use_cache=True, **{name: output[name]})
            logits.append(output.logits.cpu())
        ended = clock()
    rest = tokens.shape[1] - prompt
    return ((between - started) / prompt, (ended - between) / rest), torch.cat(logits, dim=1)
