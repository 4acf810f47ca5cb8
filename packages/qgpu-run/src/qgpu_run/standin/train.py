"""Trains the stand-in on a CPU: `python -m qgpu_run.standin.train -o FOLDER`.

The same seed and number of steps give the same dialogues in the same order. What is learnt differs
in the last digits between machines, since sums of floating-point numbers do. A run that was stopped
goes on from its last saved state when it is started again.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from qgpu_run.chat.text_model import ChatSettings
from qgpu_run.chat.tools import ADVANCED
from qgpu_run.standin.batches import Batch, batches
from qgpu_run.standin.config import model_config
from qgpu_run.standin.dialogues import ADVANCED_PROMPT
from qgpu_run.standin.tokenizer import save_tokenizer, train_tokenizer

STEPS = 7000
BATCH_TOKENS = 4096
LEARNING_RATE = 1.5e-3
WARM_UP = 150
LEAST_RATE = 0.03
WEIGHT_DECAY = 0.05
CLIP = 1.0
SAVE_SECONDS = 300
STATE = "training.pt"

NOTE = (
    "This is the stand-in, a small model trained on generated questions: it calculates and says "
    "little else. A merged Qwen3.5 takes its place with --model."
)
"""What a user is told."""


@dataclass
class Run:
    """A training run at some point.

    Attributes:
        model: the stand-in, in fp32.
        optimizer: AdamW.
        step: steps done.
        pool: the pool of dialogues that the next step is from.
        taken: batches of it that are done.
    """

    model: Any
    optimizer: Any
    step: int = 0
    pool: int = 0
    taken: int = 0

    def save(self, path: Path) -> None:
        """Writes the state beside its place and renames it."""
        import torch

        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "counts": [self.step, self.pool, self.taken],
        }
        beside = path.with_suffix(".new")
        torch.save(state, beside)
        os.replace(beside, path)

    def load(self, path: Path) -> None:
        """Continues from a saved state."""
        import torch

        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.pool, self.taken = state["counts"]


def new_run(seed: int) -> Run:
    """A model with random weights, and its optimizer; norms and biases do not decay."""
    import torch
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

    torch.manual_seed(seed)
    model: Any = Qwen3_5ForCausalLM(model_config())
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": WEIGHT_DECAY},
        {"params": others, "weight_decay": 0.0},
    ]
    return Run(model, torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=(0.9, 0.95)))


def learning_rate(step: int, steps: int) -> float:
    """Rises linearly, then falls with a cosine."""
    if step < WARM_UP:
        return LEARNING_RATE * (step + 1) / WARM_UP
    share = (step - WARM_UP) / max(1, steps - WARM_UP)
    return LEARNING_RATE * (LEAST_RATE + (1 - LEAST_RATE) * (1 + math.cos(math.pi * share)) / 2)


def train(
    run: Run, data: Iterable[tuple[int, Batch]], steps: int, after: Callable[[Run, float], None]
) -> None:
    """Takes steps until there are `steps`.

    Args:
        run: is changed.
        data: batches, from the one that the run stands at.
        steps: how many there are to be in all.
        after: is called after every step, with its loss.
    """
    import torch

    for pool, batch in data:
        if run.step >= steps:
            return
        for group in run.optimizer.param_groups:
            group["lr"] = learning_rate(run.step, steps)
        loss = _loss(run.model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), CLIP)
        run.optimizer.step()
        run.optimizer.zero_grad()
        run.taken = run.taken + 1 if pool == run.pool else 1
        run.pool = pool
        run.step += 1
        after(run, loss.item())


def _loss(model: Any, batch: Batch) -> Any:
    import torch

    ids, weights = torch.from_numpy(batch.ids), torch.from_numpy(batch.weights)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(ids, use_cache=False).logits
    losses = torch.nn.functional.cross_entropy(
        logits[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none"
    )
    weights = weights[:, 1:].flatten()
    return (losses * weights).sum() / weights.sum()


def write_model(run: Run, tokenizer: Any, folder: Path) -> None:
    """Writes the checkpoint in bf16, with its tokenizer and how to talk with it."""
    import copy

    import torch

    model = copy.deepcopy(run.model).to(torch.bfloat16)
    model.save_pretrained(folder)
    save_tokenizer(tokenizer, folder)
    settings = ChatSettings(tools_in_prompt=False, prompts={ADVANCED: ADVANCED_PROMPT}, note=NOTE)
    settings.write(folder)


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
@click.option("--steps", type=click.IntRange(1), default=STEPS, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
def main(output: Path, steps: int, seed: int) -> None:
    """Trains the stand-in: about two hours on two CPU cores."""
    from itertools import islice

    from transformers.utils import logging

    quiet: Any = logging
    quiet.set_verbosity_error()
    quiet.disable_progress_bar()
    output.mkdir(parents=True, exist_ok=True)
    state = output / STATE
    tokenizer = train_tokenizer(seed)
    run = new_run(seed)
    if state.exists():
        run.load(state)
        click.echo(f"goes on at step {run.step}")
    data = islice(batches(tokenizer, seed, BATCH_TOKENS, run.pool), run.taken, None)
    began, first, saved, losses = time.monotonic(), run.step, time.monotonic(), list[float]()

    def after(run: Run, loss: float) -> None:
        nonlocal saved
        losses.append(loss)
        now = time.monotonic()
        if run.step % 50 == 0 or run.step == steps:
            rest = (now - began) / (run.step - first) * (steps - run.step)
            mean = sum(losses) / len(losses)
            click.echo(f"step {run.step}/{steps}  loss {mean:.4f}  {rest / 60:.0f} min left")
            losses.clear()
        if now - saved > SAVE_SECONDS:
            run.save(state)
            write_model(run, tokenizer, output)
            saved = time.monotonic()

    train(run, data, steps, after)
    write_model(run, tokenizer, output)
    state.unlink(missing_ok=True)
    click.echo(f"wrote {output}")


if __name__ == "__main__":
    main()
