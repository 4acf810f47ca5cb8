"""The reference engine: transformers' own Qwen3.5 classes, unmodified, greedy, bf16.

Setup records go through the model several at a time (chunked prefill, also on top of an existing
cache, between CTAs); decoded tokens go through one by one. The winner is the largest of all
logits, text and GPU tokens alike.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary

from qgpu_run.engines.engine import Prediction
from qgpu_run.load_model import LoadedModel

PREFILL_TOKENS = 256
"""Tokens of one forward pass; bounds the memory of activations and logits."""

BF16_MANTISSA_BITS = 8
"""Significant bits of bf16, the hidden one included."""

Progress = Callable[[int], None]


class TransformersEngine:
    """Runs launches on a merged checkpoint."""

    name = "transformers"
    restarts_rows = False

    def __init__(self, loaded: LoadedModel, *, progress: Progress | None = None) -> None:
        self.config: MachineConfig = loaded.config
        self._model = loaded.model
        self._offset = loaded.token_offset
        self._memory = loaded.memory
        self._progress = progress
        self._cache: Any = None
        self._stream: Any = None
        self._rows = 0
        self._end = vocabulary(self.config).encode(Token(TokenClass.END))
        # transformers called the argument past_key_values before 5.24.
        parameters = inspect.signature(loaded.model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"

    def reset(self) -> None:
        """Drops the cache."""
        self._cache = self._stream = None
        self._rows = 0

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """Reads tokens and takes the argmax of all logits after the last."""
        return self._forward([tokens], len(tokens) - 1)[0][0]

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """Reads all tokens by chunked prefill; predictions after each from `first` on."""
        return self._forward([tokens], first)[0]

    def score_rows(self, rows: Sequence[Sequence[int]]) -> list[list[Prediction]]:
        """Reads independent streams as the rows of one batch; predictions after every token.

        Shorter rows are filled at the end with their last token, which no earlier position sees;
        `read_memory(row)` then holds what it holds without them only if that token writes nothing.
        """
        longest = max(map(len, rows))
        filled = [[*row, *[row[-1]] * (longest - len(row))] for row in rows]
        self.reset()
        predictions = self._forward(filled, 0)
        return [p[: len(row)] for p, row in zip(predictions, rows, strict=True)]

    def fork(self, rows: int) -> None:
        """Makes batch rows out of the cache of one stream."""
        if self._rows == 0:
            self._stream = self._cache
        self._rows = rows
        self._cache = copy.deepcopy(self._stream)
        if self._cache is not None:
            self._cache.reorder_cache(torch.zeros(rows, dtype=torch.long))

    def restart(self, row: int) -> None:
        """Not possible: all rows are as long as the cache."""
        raise NotImplementedError("batch rows cannot begin anew")

    def join(self) -> None:
        """Drops the batch rows."""
        if self._rows:
            self._cache, self._stream, self._rows = self._stream, None, 0

    def feed_rows(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Prediction]:
        """Reads as many tokens in every batch row; END, which writes nothing, in all others."""
        length = len(tokens[0])
        filled = [[self._end] * length for _ in range(self._rows)]
        for row, own in zip(rows, tokens, strict=True):
            if len(own) != length:
                raise ValueError("batch rows read equally many tokens")
            filled[row] = list(own)
        predictions = self._forward(filled, length - 1)
        return [predictions[row][0] for row in rows]

    def _forward(self, rows: Sequence[Sequence[int]], first: int) -> list[list[Prediction]]:
        predictions: list[list[Prediction]] = [[] for _ in rows]
        device = self._model.device
        length = len(rows[0])
        for start in range(0, length, PREFILL_TOKENS):
            count = min(PREFILL_TOKENS, length - start)
            skip = max(0, first - start)
            wanted = skip < count
            # A tensor picks the positions whose logits are computed; the least is one.
            keep = torch.arange(skip, count, device=device) if wanted else 1
            piece = [row[start : start + count] for row in rows]
            ids = torch.tensor(piece, device=device) + self._offset
            past = {} if self._cache is None else {self._cache_name: self._cache}
            with torch.inference_mode():
                output = self._model(ids, use_cache=True, logits_to_keep=keep, **past)
            self._cache = output[self._cache_name]
            if wanted:
                for row, logits in zip(predictions, output.logits, strict=True):
                    row += self._choose(logits)
            if self._progress is not None:
                self._progress(count * len(rows))
        return predictions

    def _choose(self, logits: torch.Tensor) -> list[Prediction]:
        best = logits.topk(2, dim=-1).values.float()
        margins = (best[:, 0] - best[:, 1]) / bf16_step(best[:, 0])
        # topk leaves open which of two equal logits is first; argmax is what greedy decoding does.
        winners = logits.argmax(dim=-1)
        pairs = zip(winners.tolist(), margins.tolist(), strict=True)
        return [Prediction(i - self._offset if i >= self._offset else -1 - i, m) for i, m in pairs]

    def read_memory(self, row: int = 0) -> list[int]:
        """The words of memory of a batch row, out of the recurrent states that hold them."""
        config, memory = self.config, self._memory
        words = [0] * config.memory_words
        if self._cache is None:
            return words
        columns = int(memory["columns"])
        rows_per_head = int(memory["rows_per_head"])
        weights = 1 << torch.arange(columns, dtype=torch.int64)
        for bank, groups in enumerate(memory["banks"]):
            for group, (layer, head) in enumerate(groups):
                state = self._cache.layers[layer].recurrent_states[0]
                if state is None:
                    continue
                bits = (state[row, head, :rows_per_head, :columns] > 0).cpu().long()
                for index, word in enumerate((bits * weights).sum(-1).tolist()):
                    address = (group * rows_per_head + index) * config.lanes + bank
                    if address < config.memory_words:
                        words[address] = word
        return words


def bf16_step(values: torch.Tensor) -> torch.Tensor:
    """Distance from each value to the next bf16 of larger size."""
    _, exponent = torch.frexp(values.float())
    return torch.ldexp(torch.ones_like(values), exponent - BF16_MANTISSA_BITS)
