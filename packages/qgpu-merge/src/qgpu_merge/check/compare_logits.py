"""KL divergence, argmax and GPU token mass, from logits that come block by block of the vocabulary.

A whole row of logits in float64 would need 2 MB a token and model. Instead each block updates, per
token, the running maximum m and S = sum exp(a - m) of every model, and for a pair P, Q the moment
M = sum exp(a - m) (a - b), with P's logits a and Q's b. At the end, with lse = m + log S,

    KL(P || Q) = sum p (log p - log q) = M / S - lse(a) + lse(b).

Where Q has more tokens than P, the sum runs over P's tokens and Q's lse over all of Q's: what Q
gives to other tokens counts as lost. All in float64, so that the KL of a model with itself is 0.
"""

from __future__ import annotations

import torch


class RunningSoftmax:
    """Softmax and argmax of one model's logits for T tokens, over the blocks seen so far.

    Attributes:
        peak, total: m and S above, [T].
        choice: the argmax [T]; the lowest id among equals, as in greedy decoding.
        exponentials: exp(a - m) of the last block [T, B].
        shrink: factor that the last block put on everything summed before it [T, 1].
    """

    def __init__(self, tokens: int, device: torch.device) -> None:
        self.peak = torch.full((tokens,), -torch.inf, dtype=torch.float64, device=device)
        self.total = torch.zeros_like(self.peak)
        self.choice = torch.zeros(tokens, dtype=torch.long, device=device)
        self.exponentials = self.shrink = torch.empty(0)

    def add(self, logits: torch.Tensor, first: int) -> torch.Tensor:
        """Adds logits [T, B] of the tokens from id `first` on; returns sum exp(a - m) [T]."""
        best, where = logits.max(dim=1)
        self.choice = torch.where(best > self.peak, where + first, self.choice)
        peak = torch.maximum(best, self.peak)
        self.shrink = (self.peak - peak).exp()
        self.exponentials = (logits - peak.unsqueeze(1)).exp_()
        added = self.exponentials.sum(1)
        self.peak, self.total = peak, self.total * self.shrink + added
        return added

    @property
    def log_sum(self) -> torch.Tensor:
        """Log of the sum of all exponentials [T]."""
        return self.peak + self.total.log()


class RunningDivergence:
    """KL(P || Q) per token."""

    def __init__(self, p: RunningSoftmax, q: RunningSoftmax) -> None:
        self._p, self._q = p, q
        self._moment = torch.zeros_like(p.total)

    def add(self, p_logits: torch.Tensor, q_logits: torch.Tensor) -> None:
        """Adds a block of both, after P's own `add`."""
        new = (self._p.exponentials * (p_logits - q_logits)).sum(1)
        self._moment = self._moment * self._p.shrink + new

    def value(self) -> torch.Tensor:
        """KL per token [T], after the last block."""
        return self._moment / self._p.total - self._p.log_sum + self._q.log_sum


class RunningMass:
    """Probability that a model gives to a part of its vocabulary."""

    def __init__(self, model: RunningSoftmax) -> None:
        self._model = model
        self._sum = torch.zeros_like(model.total)

    def add(self, added: torch.Tensor | None) -> None:
        """Takes what the model's `add` returned; None for a block outside the part."""
        self._sum = self._sum * self._model.shrink
        if added is not None:
            self._sum = self._sum + added

    def value(self) -> torch.Tensor:
        """Mass per token [T]."""
        return self._sum / self._model.total
