"""The program ROM as a listing, with the block that runs and who waits where."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import PurePath

from qgpu_isa.canonical import canonical_block
from qgpu_isa.encoding import decode_block
from qgpu_isa.instruction import Slot
from qgpu_isa.program_text import branch_to_text, slot_to_text

from qgpu_run.panel.events import LaunchInfo
from qgpu_run.panel.lines.line import Line, Lines, Role
from qgpu_run.panel.machine_view import Doing, MachineView


@lru_cache(maxsize=4096)
def block_texts(rows: tuple[int, ...]) -> tuple[tuple[Slot | None, str], ...]:
    """The lines of a block: of its slots, then of its branch (None)."""
    try:
        block = canonical_block(decode_block(rows))
    except ValueError:
        return ((None, "no instructions"),)
    texts: list[tuple[Slot | None, str]] = [
        (slot, slot_to_text(slot, block.slots[slot])) for slot in Slot if slot in block.slots
    ]
    return (*texts, (None, branch_to_text(block.branch)))


def program_lines(view: MachineView, info: LaunchInfo) -> Lines:
    """All blocks of the program."""
    waiting = Counter(
        view.passes[g].stopped_at
        for g in range(view.config.passes)
        if view.doing(g) in (Doing.WARP, Doing.CTA, Doing.READY)
    )
    running = view.run.block if view.cta_runs and view.run is not None else None
    lines: list[Line] = []
    focus = None
    for index, block in enumerate(info.image.blocks):
        runs = index == running
        role: Role = "run" if runs else ""
        head: Line = [("▶ " if runs else "  ", role), (f"block {index}", role or "label")]
        if waiting[index]:
            head.append((f"  {waiting[index]} wait here", "wait"))
        if block.source:
            head.append((f"  ; {PurePath(block.source[0]).name}", "dim"))
        first = len(lines)
        lines.append(head)
        lines += [[("  " + " ".join(block_line(text)), role)] for _, text in
                  block_texts(tuple(view.rom[index]))]  # fmt: skip
        if runs:
            focus = (first, len(lines) - 1)
    return Lines(lines, focus)


def block_line(text: str) -> tuple[str, str]:
    """A listing's line, its destination nearer than in a file."""
    body, arrow, rest = text.partition(" -> ")
    if not arrow:
        return body, ""
    return f"{body.rstrip():<24}", f"-> {' '.join(rest.split())}"
