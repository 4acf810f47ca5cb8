"""Greedy continuations of the original, and whether the merged model would write the same.

The original decodes through transformers with its cache. The merged model then reads prompt and
continuation in one pass. If its choice at every position is the next token of the continuation,
then by induction it writes the same continuation: the tokens before each are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from qgpu_merge.check.run_models import apply_final_norm, choose, run_layers
from qgpu_merge.check.streamed_model import FP32, StreamedModel, text_config
from qgpu_merge.errors import CheckpointError
from qgpu_merge.read_checkpoint import Checkpoint

Step = Callable[[], None]


@dataclass(frozen=True)
class Continuation:
    """A prompt [P], the original's greedy continuation [N], and how far each choice was ahead [N].

    A margin is the largest logit less the second.
    """

    prompt: torch.Tensor
    written: torch.Tensor
    margins: torch.Tensor


def decode_original(
    checkpoint: Checkpoint,
    prompts: list[torch.Tensor],
    tokens: int,
    device: torch.device,
    step: Step,
) -> list[Continuation]:
    """Continues prompts by `tokens` tokens in fp32; the whole original is in memory.

    End tokens do not stop it, and no generation config has a say: it takes the largest logit.

    Raises:
        CheckpointError: transformers does not find all weights.
    """
    model = _load_fp32(checkpoint).to(device).eval()
    found = []
    for prompt in prompts:
        ids, cache = prompt.view(1, -1).to(device), None
        written, margins = [], []
        for _ in range(tokens):
            with torch.no_grad():
                output = model(ids, cache=cache, use_cache=True, logits_to_keep=1)
            cache = output.cache
            ids = output.logits[:, -1].argmax(-1, keepdim=True)
            best, second = output.logits[0, -1].topk(2).values.tolist()
            written.append(int(ids))
            margins.append(best - second)
        found.append(Continuation(prompt, torch.tensor(written), torch.tensor(margins)))
        step()
    return found


def _load_fp32(checkpoint: Checkpoint) -> Any:
    """The language model as transformers loads it, of a multimodal checkpoint as well."""
    from transformers import AutoModelForCausalLM

    config = text_config(checkpoint)
    # Multimodal configs may say it outside of the text model's section, where transformers,
    # loading the text model alone, would miss it and draw a random head.
    config.tie_word_embeddings = checkpoint.tied
    auto: Any = AutoModelForCausalLM
    model, info = auto.from_pretrained(
        checkpoint.folder,
        config=config,
        dtype=torch.float32,
        local_files_only=True,
        output_loading_info=True,
    )
    if info["missing_keys"]:
        names = ", ".join(sorted(info["missing_keys"])[:3])
        raise CheckpointError(f"{checkpoint.folder}: transformers finds no {names}")
    return model


def differences(
    merged: StreamedModel, continuations: list[Continuation], first_layer: int, step: Step
) -> list[str]:
    """Where the merged model in fp32 would continue differently, in words.

    Args:
        merged: the merged model.
        continuations: what the original wrote.
        first_layer: layers before it are skipped, as they add nothing to text.
        step: called after each layer.
    """
    sequences = [torch.cat([c.prompt, c.written]) for c in continuations]
    hidden = {FP32: [merged.embed(ids, torch.float32) for ids in sequences]}
    run_layers(merged, hidden, range(first_layer, merged.layers), step)
    apply_final_norm(merged, hidden)
    found = []
    for number, (one, choice) in enumerate(
        zip(continuations, choose(merged, FP32, hidden[FP32]), strict=True)
    ):
        would_write = choice[len(one.prompt) - 1 : -1]
        unequal = (would_write != one.written).nonzero().flatten().tolist()
        if unequal:
            at = unequal[0]
            found.append(
                f"continuation {number} differs at token {at}: the original writes "
                f"{int(one.written[at])} with a margin of {float(one.margins[at]):.2g}, "
                f"the merged model {int(would_write[at])}"
            )
    return found
