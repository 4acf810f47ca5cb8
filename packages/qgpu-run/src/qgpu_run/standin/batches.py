"""Dialogues as batches of token ids, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from qgpu_run.standin.dialogues import draw_dialogue

POOL = 2048
"""Dialogues that are drawn at a time, and sorted by length into batches."""

PADDING = 32
"""Batches are as long as a multiple of this many tokens."""

CONTEXT_WEIGHT = 0.1
"""What a token that the model does not write counts in the loss, beside 1 for one that it does."""


@dataclass(frozen=True)
class Batch:
    """Sequences of one length.

    Attributes:
        ids: int64 [rows, length], padded at the end.
        weights: float32 [rows, length]: what the prediction of each token counts in the loss.
    """

    ids: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]


def batches(tokenizer: Any, seed: int, tokens: int, start: int = 0) -> Iterator[tuple[int, Batch]]:
    """Endless batches.

    Args:
        tokenizer: the stand-in's.
        seed: decides what is drawn.
        tokens: about how many tokens a batch has.
        start: the pool to begin with.

    Yields:
        the number of the pool that a batch is from, and the batch.
    """
    pool = start
    while True:
        random = Random(f"{seed}/{pool}")
        encoded = [_encode(tokenizer, random) for _ in range(POOL)]
        encoded.sort(key=lambda pair: len(pair[0]))
        made = []
        while encoded:
            length = -(-len(encoded[-1][0]) // PADDING) * PADDING
            rows = max(1, tokens // length)
            made.append(_padded(encoded[-rows:], length, tokenizer.pad_token_id))
            del encoded[-rows:]
        random.shuffle(made)
        for batch in made:
            yield pool, batch
        pool += 1


def _encode(tokenizer: Any, random: Random) -> tuple[list[int], list[float]]:
    messages = draw_dialogue(random).messages
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    ids = tokenizer(text, add_special_tokens=False).input_ids
    return ids, token_weights(tokenizer, ids)


def token_weights(tokenizer: Any, ids: list[int]) -> list[float]:
    """What each token counts: all, from behind a `</think>` to the end of its turn.

    The template writes the tag in the turns of the last exchange, which is the one to be learnt.
    """
    behind, end = tokenizer.convert_tokens_to_ids(["</think>", "<|im_end|>"])
    weights, written = [], False
    for index, token in enumerate(ids):
        # The line ends behind the tag are part of the prompt.
        written = written or (index >= 2 and ids[index - 2] == behind)
        weights.append(1.0 if written else CONTEXT_WEIGHT)
        written = written and token != end
    return weights


def _padded(rows: list[tuple[list[int], list[float]]], length: int, pad: int) -> Batch:
    ids = np.full((len(rows), length), pad, np.int64)
    weights = np.zeros((len(rows), length), np.float32)
    for row, (tokens, values) in enumerate(rows):
        ids[row, : len(tokens)] = tokens
        weights[row, : len(tokens)] = values
    return Batch(ids, weights)
