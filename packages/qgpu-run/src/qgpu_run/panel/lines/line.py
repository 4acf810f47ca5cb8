"""Lines of text whose parts have roles; a widget gives each role a style."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from qgpu_isa.words import signed

Role = Literal["", "dim", "label", "run", "new", "changed", "wait", "bad", "mark"]
"""dim: of no interest now; label: a heading; run: runs; new: written just now; changed: written
in this launch; wait: waits; bad: a fault; mark: chosen by the user."""

Line = list[tuple[str, Role]]


@dataclass(frozen=True)
class Lines:
    """The content of a pane.

    Attributes:
        lines: all of them.
        focus: the first and last line that should be in sight, if any.
        head: how many lines at the top stay when the others scroll.
    """

    lines: list[Line]
    focus: tuple[int, int] | None = None
    head: int = 0


def number(word: int, base: int) -> str:
    """A word as people read it: signed decimal, or hexadecimal without zeros in front."""
    return str(signed(word)) if base == 10 else f"{word:x}"


def text_of(line: Line) -> str:
    """A line without its roles."""
    return "".join(part for part, _ in line)


def lanes_per_line(lanes: int, label: int, cell: int, width: int) -> int:
    """Lanes whose cells fit into a line behind a label: all, a half, a quarter, ..., or one."""
    while lanes > 1 and label + lanes * cell > width:
        lanes //= 2
    return lanes


def wrap_lanes(label: tuple[str, Role], cells: Line, per_line: int) -> list[Line]:
    """A row of one cell a lane, in as many lines as it takes."""
    blank: tuple[str, Role] = (" " * len(label[0]), "")
    return [
        [label if low == 0 else blank, *cells[low : low + per_line]]
        for low in range(0, len(cells), per_line)
    ]
