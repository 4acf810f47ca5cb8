"""Both models over all sequences: layers streamed, logits compared block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn.functional import linear

from qgpu_merge.check.compare_logits import RunningDivergence, RunningMass, RunningSoftmax
from qgpu_merge.check.streamed_model import BF16, BF16_FP32_NORMS, FP32, Precision, StreamedModel

Hidden = dict[Precision, list[torch.Tensor]]
"""Residual streams [1, T, hidden] of all sequences, in each precision."""

Step = Callable[[], None]
Stage = Callable[[str, int], Step]
"""Begins a named stage of so many steps; returns what is called after each."""

BLOCK_LOGITS = 2**21
"""Logits of one model in memory at a time: 16 MB in float64."""

ORIGINAL, MERGED = "original", "merged"

Run = tuple[str, Precision]
"""A model in a precision."""

ORIGINAL_RUNS = (FP32, BF16)
MERGED_RUNS = (FP32, BF16, BF16_FP32_NORMS)

COMPARED: dict[str, tuple[Run, Run]] = {
    "kl_fp32": ((ORIGINAL, FP32), (MERGED, FP32)),
    "kl_bf16": ((ORIGINAL, BF16), (MERGED, BF16)),
    "kl_bf16_original_vs_fp32": ((ORIGINAL, FP32), (ORIGINAL, BF16)),
    "kl_bf16_merged_vs_fp32": ((ORIGINAL, FP32), (MERGED, BF16)),
    "kl_bf16_merged_fp32norms_vs_fp32": ((ORIGINAL, FP32), (MERGED, BF16_FP32_NORMS)),
}
"""P and Q of each KL(P || Q)."""


@dataclass(frozen=True)
class Comparison:
    """Measurements per token, a list of [T] by sequence.

    Attributes:
        divergence: by the names in COMPARED.
        choice: the greedy choice of each run.
        gpu_mass: probability of all GPU tokens in the merged model in bf16.
    """

    divergence: dict[str, list[torch.Tensor]]
    choice: dict[Run, list[torch.Tensor]]
    gpu_mass: list[torch.Tensor]


def run_layers(model: StreamedModel, hidden: Hidden, layers: range, step: Step) -> None:
    """Takes all sequences through some layers, in place; each layer is read once."""
    for index in layers:
        loaded = model.load_layer(index, list(hidden))
        for precision, sequences in hidden.items():
            for i, state in enumerate(sequences):
                sequences[i] = model.run_layer(loaded[precision], index, state)
        step()


def apply_final_norm(model: StreamedModel, hidden: Hidden) -> None:
    """Normalises all sequences, in place."""
    for precision, sequences in hidden.items():
        for i, state in enumerate(sequences):
            sequences[i] = model.final_norm(state, precision)


def blocks_of(ids: range, longest: int) -> list[range]:
    """The ids in blocks whose logits, for `longest` tokens, fit BLOCK_LOGITS."""
    size = min(8192, max(256, BLOCK_LOGITS // longest))
    return [ids[start : start + size] for start in range(0, len(ids), size)]


def compare_runs(
    models: dict[str, StreamedModel], hidden: dict[str, Hidden], gpu_ids: range, stage: Stage
) -> Comparison:
    """Compares the logits of normalised sequences, a block of the vocabulary at a time."""
    runs = [(name, precision) for name, some in hidden.items() for precision in some]
    lengths = [state.shape[1] for state in hidden[ORIGINAL][FP32]]
    device = _math_device(models[ORIGINAL].device)
    soft = {run: [RunningSoftmax(n, device) for n in lengths] for run in runs}
    pairs = {
        name: [RunningDivergence(soft[p][s], soft[q][s]) for s in range(len(lengths))]
        for name, (p, q) in COMPARED.items()
    }
    masses = [RunningMass(one) for one in soft[MERGED, BF16]]
    text = blocks_of(range(gpu_ids.start), max(lengths))
    blocks = text + blocks_of(gpu_ids, max(lengths))
    step = stage("logits", len(blocks))
    for rows in blocks:
        on_text = rows.start < gpu_ids.start
        names = (ORIGINAL, MERGED) if on_text else (MERGED,)
        heads = {
            name: models[name].head_rows(rows, {p.dtype for p in hidden[name]}) for name in names
        }
        for s in range(len(lengths)):
            logits, block = {}, {}
            for run in runs:
                name, precision = run
                if name in heads:
                    state = hidden[name][precision][s]
                    logits[run] = _logits(state, heads[name][precision.dtype], device)
                    block[run] = soft[run][s].add(logits[run], rows.start)
            masses[s].add(block[MERGED, BF16], not on_text)
            if on_text:
                for name, (p, q) in COMPARED.items():
                    pairs[name][s].add(block[p], logits[p], logits[q])
        step()
    return Comparison(
        {name: [one.value().cpu() for one in some] for name, some in pairs.items()},
        {run: [one.choice.cpu() for one in some] for run, some in soft.items()},
        [mass.value().cpu() for mass in masses],
    )


def choose(
    model: StreamedModel, precision: Precision, hidden: list[torch.Tensor]
) -> list[torch.Tensor]:
    """The greedy choice [T] of one model after every token of normalised sequences."""
    device = _math_device(model.device)
    soft = [RunningSoftmax(state.shape[1], device) for state in hidden]
    longest = max(state.shape[1] for state in hidden)
    for rows in blocks_of(range(model.vocabulary), longest):
        head = model.head_rows(rows, {precision.dtype})[precision.dtype]
        for one, state in zip(soft, hidden, strict=True):
            one.add(_logits(state, head, device), rows.start)
    return [one.choice.cpu() for one in soft]


def _logits(state: torch.Tensor, head: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Logits [T, rows], computed in the model's precision and then held in float64."""
    return linear(state, head)[0].to(device).double()


def _math_device(device: torch.device) -> torch.device:
    # Apple's GPUs have no float64.
    return torch.device("cpu") if device.type == "mps" else device
