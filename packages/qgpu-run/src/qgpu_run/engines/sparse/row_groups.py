"""Which rows are read together: as many at a time as a tile has columns, on all cores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qgpu_run.engines.sparse.arrays import Array
from qgpu_run.engines.sparse.tile_code import TILE

LEAST = 4
"""Rows that are not divided among cores."""

Group = tuple[list[int], Array, Array]
"""Places in what was asked for; the stream and the token of each column, in reading order."""


def row_groups(rows: Sequence[int], tokens: Sequence[Sequence[int]], threads: int) -> list[Group]:
    """Divides rows among calls of `forward`; no row is in two groups.

    Rows with equal tokens stand together, since a tile costs what any of its columns needs. Within
    a group the first tokens of all rows are read, then the second ones.

    Args:
        rows: the stream of each.
        tokens: what each reads.
        threads: groups that can be read at the same time.
    """
    order = sorted(range(len(rows)), key=lambda place: tuple(tokens[place]))
    count = max(-(-len(rows) // TILE), min(threads, -(-len(rows) // LEAST)))
    groups = []
    for part in np.array_split(np.array(order), count):
        places = part.tolist()
        longest = max(len(tokens[place]) for place in places)
        columns = [
            (rows[place], tokens[place][position])
            for position in range(longest)
            for place in places
            if position < len(tokens[place])
        ]
        streams, numbers = np.array(columns, dtype=np.int64).T.copy()
        groups.append((places, streams, numbers))
    return groups


def last_positions(rows: Sequence[int], streams: Array) -> list[int]:
    """The last column of each row."""
    last = dict(zip(streams.tolist(), range(len(streams)), strict=True))
    return [last[row] for row in rows]
