"""Near misses of a misspelt word, for error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`"; did you mean 'add'?"` for the nearest of `known`, or `""` when none is near."""
    spelling = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), spelling, n=1)
    return f"; did you mean '{spelling[near[0]]}'?" if near else ""
