"""The warp scheduler: every pass, what it does, and where its lanes are."""

from __future__ import annotations

from collections import Counter

from qgpu_isa.program import Status

from qgpu_run.panel.events import LaunchInfo
from qgpu_run.panel.lane_places import Places
from qgpu_run.panel.lines.line import Line, Lines, Role
from qgpu_run.panel.machine_view import Doing, MachineView

ACTIVE, WAITING, EXITED, UNSURE = "●", "○", "·", "?"

ROLES: dict[Doing, Role] = {
    Doing.RUNS: "run",
    Doing.WARP: "wait",
    Doing.CTA: "wait",
    Doing.DONE: "dim",
    Doing.UNUSED: "dim",
}


def scheduler_lines(view: MachineView, info: LaunchInfo, selected: int) -> Lines:
    """One line a pass that has threads, warp by warp."""
    config = view.config
    per_warp = config.passes_per_warp
    cta = "no CTA yet" if view.cta is None else f"CTA {view.cta} ({info.ctas} in all)"
    lines: list[Line] = [[(f"{cta}, {info.threads} threads", ""), (f"  phase {view.phase}", "dim")]]
    focus = None
    for warp in range(config.passes // per_warp):
        own = range(warp * per_warp, (warp + 1) * per_warp)
        if not any(view.passes[g].exists for g in own):
            continue
        lines.append([(f"warp {warp}", "label")])
        for g in own:
            if view.passes[g].exists:
                if view.doing(g) is Doing.RUNS:
                    focus = (len(lines), len(lines))
                lines.append(_pass_line(view, g, g == selected))
    return Lines(lines, focus, head=1)


def _pass_line(view: MachineView, g: int, selected: bool) -> Line:
    doing = view.doing(g)
    role = ROLES.get(doing, "")
    mark = "▶" if doing is Doing.RUNS else " "
    line: Line = [
        (mark, role),
        (f"{g:>3} ", "mark" if selected else role),
        (lane_glyphs(view, g), role),
        (f" {doing.value}", role),
    ]
    at = _block_text(view, g, doing)
    if at:
        line.append((f" {at}", role))
    spread = _spread(view, g)
    if spread:
        line.append((f"  {spread}", "dim"))
    return line


def _block_text(view: MachineView, g: int, doing: Doing) -> str:
    if doing is Doing.RUNS and view.run is not None:
        return f"block {view.run.block}"
    if doing in (Doing.WARP, Doing.CTA, Doing.READY):
        return f"block {view.passes[g].stopped_at}"
    return ""


def lane_glyphs(view: MachineView, g: int) -> str:
    """One sign a lane: runs, waits, has exited, is not there."""
    own = view.passes[g]
    active = view.run.mask if view.doing(g) is Doing.RUNS and view.run is not None else 0
    return "".join(
        " " if not own.exists >> lane & 1 else ACTIVE if active >> lane & 1 else _glyph(places)
        for lane, places in enumerate(own.lanes)
    )


def _glyph(places: Places) -> str:
    exits = {place.status is Status.EXIT for place in places}
    if exits == {True}:
        return EXITED
    return WAITING if exits == {False} else UNSURE


def _spread(view: MachineView, g: int) -> str:
    """Where the lanes of a pass will go on, if not all at one place."""
    own = view.passes[g]
    counts: Counter[str] = Counter()
    for lane, places in enumerate(own.lanes):
        if own.exists >> lane & 1:
            if len(places) != 1:
                counts["?"] += 1
            else:
                (place,) = places
                counts["exit" if place.status is Status.EXIT else str(place.block)] += 1
    if len(counts) < 2:
        return ""
    return "next " + " ".join(f"{where}×{count}" for where, count in sorted(counts.items()))
