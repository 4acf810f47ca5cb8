"""Means, ratios and comparisons of measurements that come in sequences of dependent tokens.

Tokens of a sequence share their context, so intervals come from resampling whole sequences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; `low` and `high` are None with fewer than two sequences."""

    value: float
    low: float | None
    high: float | None

    def interval(self) -> list[float] | None:
        return None if self.low is None or self.high is None else [self.low, self.high]


def mean(values: list[torch.Tensor], seed: int) -> Estimate:
    """The mean over all tokens of values per sequence, each [T]."""
    return ratio(values, [torch.ones_like(v) for v in values], seed)


def ratio(top: list[torch.Tensor], bottom: list[torch.Tensor], seed: int) -> Estimate:
    """Sum of `top` over sum of `bottom`, both lists of [T] by sequence; percentile bootstrap."""
    tops, bottoms = (torch.stack([v.double().sum().cpu() for v in s]) for s in (top, bottom))
    value = float(tops.sum() / bottoms.sum())
    count = len(tops)
    if count < 2:
        return Estimate(value, None, None)
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(count, (RESAMPLES, count), generator=generator)
    resampled = tops[chosen].sum(1) / bottoms[chosen].sum(1)
    edge = (1 - LEVEL) / 2
    edges = torch.tensor([edge, 1 - edge], dtype=torch.float64)
    low, high = torch.quantile(resampled, edges).tolist()
    return Estimate(value, low, high)


def sign_test(worse: int, better: int) -> float:
    """Probability of at least `worse` of all changes being for the worse, if either is as likely.

    McNemar's exact test, one-sided: of the tokens on which two models disagree about a yes or no.
    """
    changes = worse + better
    logs = [
        math.lgamma(changes + 1) - math.lgamma(k + 1) - math.lgamma(changes - k + 1)
        for k in range(worse, changes + 1)
    ]
    return min(1.0, math.fsum(math.exp(log - changes * math.log(2)) for log in logs))
