"""KL divergence, argmax and GPU token mass, from logits that come block by block of the vocabulary.

A whole row of logits in float64 would need 2 MB a token and model. Instead each block updates, per
token, the running maximum m and S = sum exp(a - m) of every model, and for a pair P, Q the moment
M = sum exp(a - m) (a - b), with P's logits a and Q's b. At the end, with lse = m + log S,

    KL(P || Q) = sum p (log p - log q) = M / S - lse(a) + lse(b).

Where Q has more tokens than P, the sum runs over P's tokens and Q's lse over all of Q's: what Q
gives to other tokens counts as lost. All in float64, so that the KL of a model with itself is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Block:
    """What one block of logits adds to a softmax.

    Attributes:
        exponentials: exp(a - m) [T, B], with the maximum m so far.
        added: their sum [T].
        shrink: exp(old m - m) [T], to be put on everything summed before.
    """

    exponentials: torch.Tensor
    added: torch.Tensor
    shrink: torch.Tensor


class RunningSoftmax:
    """Softmax and argmax of one model's logits for T tokens, over the blocks seen so far.

    Attributes:
        peak, total: m and S above, [T].
        choice: the argmax [T]; the lowest id among equals, as in greedy decoding.
    """

    def __init__(self, tokens: int, device: torch.device) -> None:
        self.peak = torch.full((tokens,), -torch.inf, dtype=torch.float64, device=device)
        self.total = torch.zeros_like(self.peak)
        self.choice = torch.zeros(tokens, dtype=torch.long, device=device)

    def add(self, logits: torch.Tensor, first: int) -> Block:
        """Adds logits [T, B] of the tokens from id `first` on."""
        best, where = logits.max(dim=1)
        self.choice = torch.where(best > self.peak, where + first, self.choice)
        peak = torch.maximum(best, self.peak)
        exponentials = (logits - peak.unsqueeze(1)).exp_()
        block = Block(exponentials, exponentials.sum(1), (self.peak - peak).exp())
        self.peak, self.total = peak, self.total * block.shrink + block.added
        return block

    @property
    def log_sum(self) -> torch.Tensor:
        """Log of the sum of all exponentials [T]."""
        return self.peak + self.total.log()


class RunningDivergence:
    """KL(P || Q) per token."""

    def __init__(self, p: RunningSoftmax, q: RunningSoftmax) -> None:
        self._p, self._q = p, q
        self._moment = torch.zeros_like(p.total)

    def add(self, p_block: Block, p_logits: torch.Tensor, q_logits: torch.Tensor) -> None:
        """Adds a block of both; `p_block` is what P's softmax made of its logits."""
        new = (p_block.exponentials * (p_logits - q_logits)).sum(1)
        self._moment = self._moment * p_block.shrink + new

    def value(self) -> torch.Tensor:
        """KL per token [T], after the last block."""
        return self._moment / self._p.total - self._p.log_sum + self._q.log_sum


class RunningMass:
    """Probability that a model gives to a part of its vocabulary."""

    def __init__(self, model: RunningSoftmax) -> None:
        self._model = model
        self._sum = torch.zeros_like(model.total)

    def add(self, block: Block, inside: bool) -> None:
        """Adds a block, which is `inside` the part or outside of it."""
        self._sum = self._sum * block.shrink
        if inside:
            self._sum = self._sum + block.added

    def value(self) -> torch.Tensor:
        """Mass per token [T]."""
        return self._sum / self._model.total
