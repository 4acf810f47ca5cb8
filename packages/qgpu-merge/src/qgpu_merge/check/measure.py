"""All measurements of a check, in the order that keeps memory low."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import torch

from qgpu_merge.check.base_reach import base_reach
from qgpu_merge.check.continuations import decode_original, differences
from qgpu_merge.check.corpus import Corpus, read_corpus
from qgpu_merge.check.gpu_stream import gpu_stream
from qgpu_merge.check.layer_residual import Stream, observe_residual, text_streams
from qgpu_merge.check.machine import device_peak_bytes, open_device, peak_bytes, quiet_transformers
from qgpu_merge.check.open_pair import Pair
from qgpu_merge.check.residual_proof import prove_residual
from qgpu_merge.check.result import Result
from qgpu_merge.check.run_models import (
    MERGED,
    MERGED_RUNS,
    ORIGINAL,
    ORIGINAL_RUNS,
    Hidden,
    Stage,
    apply_final_norm,
    choose,
    compare_runs,
    run_layers,
)
from qgpu_merge.check.streamed_model import BF16, FP32, StreamedModel
from qgpu_merge.check.summarise import summarise

PREFIX_TOKENS = 64
"""GPU tokens before the text that is observed behind GPU tokens."""


@dataclass(frozen=True)
class Options:
    """What is measured on.

    Attributes:
        texts: files instead of the default corpus.
        tokens: text tokens in all.
        sequence: longest sequence.
        layer_tokens: text tokens that are taken through the GPU layers.
        continuations, continuation_tokens: greedy continuations and their length.
        all_layers: whether all measurements on text run the GPU layers.
        device: torch's name of it.
    """

    texts: tuple[Path, ...] = ()
    tokens: int = 20_000
    sequence: int = 512
    layer_tokens: int = 512
    continuations: int = 2
    continuation_tokens: int = 256
    all_layers: bool = False
    seed: int = 0
    device: str = "cpu"


def measure(pair: Pair, options: Options, stage: Stage) -> Result:
    """Runs all measurements.

    Raises:
        CheckpointError: a tensor cannot be read.
        CheckError: there is no such device, or no text.
    """
    started = time.monotonic()
    quiet_transformers()
    device = open_device(options.device)
    corpus = read_corpus(
        pair.original,
        options.texts,
        tokens=options.tokens,
        sequence=options.sequence,
        seed=options.seed,
    )
    merged = StreamedModel(pair.merged, device)
    proof = prove_residual(pair, stage("proof", pair.gpu_layers))
    reach = base_reach(pair, stage("reach of the base", merged.layers - pair.gpu_layers))
    gpu = Stream("GPU tokens", merged.embed(gpu_stream(pair, options.seed), torch.bfloat16), 0)
    gpu.text = gpu.hidden.shape[1]
    texts = _first_tokens(corpus, options.layer_tokens)
    prefix = gpu_stream(pair, options.seed + 1)[-PREFIX_TOKENS:]
    streams = {p: text_streams(merged, texts, prefix, p.dtype) for p in (FP32, BF16)}
    streams[BF16].append(gpu)
    observing = stage("GPU layers", pair.gpu_layers)
    deviations = observe_residual(merged, pair.gpu_layers, streams, observing)
    streams.clear()
    exact = proof.holds and not deviations
    first = 0 if options.all_layers or not exact else pair.gpu_layers
    hidden = _run_text(pair, merged, corpus, first, stage)
    wins = _text_wins(pair, merged, gpu.hidden, stage)
    comparison = compare_runs(*hidden, pair.gpu_tokens, stage)
    del hidden
    measuring_peak = peak_bytes()
    prompts = corpus.prompts[: options.continuations]
    changes: list[str] = []
    if prompts:
        steps = stage("original continues", len(prompts))
        length = options.continuation_tokens
        written = decode_original(pair.original, prompts, length, device, steps)
        steps = stage("merged model reads on", merged.layers - first)
        changes = differences(merged, written, first, steps)
    return Result(
        corpus=corpus.description,
        tokens=corpus.tokens,
        sequences=len(corpus.sequences),
        text=summarise(comparison, options.seed),
        text_wins=wins,
        gpu_tokens=gpu.text,
        observed_tokens=sum(map(len, texts)),
        deviations=deviations,
        proof=proof,
        reach=reach,
        skipped_layers=first,
        continuations=len(prompts),
        continuation_tokens=options.continuation_tokens,
        continuation_differences=changes,
        measuring_peak_bytes=measuring_peak,
        peak_bytes=peak_bytes(),
        device_peak_bytes=device_peak_bytes(device),
        seconds=time.monotonic() - started,
    )


def _first_tokens(corpus: Corpus, tokens: int) -> list[torch.Tensor]:
    """The first sequences, up to so many tokens."""
    found: list[torch.Tensor] = []
    for ids in corpus.sequences:
        left = tokens - sum(map(len, found))
        if left > 0:
            found.append(ids[:left])
    return found


def _run_text(
    pair: Pair, merged: StreamedModel, corpus: Corpus, first: int, stage: Stage
) -> tuple[dict[str, StreamedModel], dict[str, Hidden]]:
    """Both models, and what their heads read after every token of the text."""
    models = {ORIGINAL: StreamedModel(pair.original, merged.device), MERGED: merged}
    hidden: dict[str, Hidden] = {}
    for name, model in models.items():
        start, precisions = (first, MERGED_RUNS) if name == MERGED else (0, ORIGINAL_RUNS)
        states = {p: [model.embed(ids, p.dtype) for ids in corpus.sequences] for p in precisions}
        steps = stage(f"{name} layers", model.layers - start)
        run_layers(model, states, range(start, model.layers), steps)
        apply_final_norm(model, states)
        hidden[name] = states
    return models, hidden


def _text_wins(pair: Pair, merged: StreamedModel, gpu: torch.Tensor, stage: Stage) -> int:
    """On how many GPU tokens a text token has the largest logit; `gpu` is behind the GPU layers."""
    states: Hidden = {BF16: [gpu]}
    layers = range(pair.gpu_layers, merged.layers)
    run_layers(merged, states, layers, stage("GPU tokens", len(layers)))
    apply_final_norm(merged, states)
    (choice,) = choose(merged, BF16, states[BF16])
    return int((choice < pair.text_tokens).sum())
