"""What is compared runs in turns, A B A B, so that a busy machine is busy for both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median


def in_turns(repeats: int, *measures: Callable[[], float]) -> list[list[float]]:
    """The values of each measure, one a turn."""
    values: list[list[float]] = [[] for _ in measures]
    for _ in range(repeats):
        for found, measure in zip(values, measures, strict=True):
            found.append(measure())
    return values


def ratio(upper: Sequence[float], lower: Sequence[float]) -> float:
    """The median of the ratios of values that were measured in the same turn."""
    return median(u / v for u, v in zip(upper, lower, strict=True))
