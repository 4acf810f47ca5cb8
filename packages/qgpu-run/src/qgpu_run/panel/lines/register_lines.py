"""The register file of one pass: predicates and registers, a word a lane."""

from __future__ import annotations

from collections.abc import Iterable

from qgpu_isa.canonical import operand_use
from qgpu_isa.program import CondSource, DstKind, ProgramImage, Source

from qgpu_run.panel.events import LaunchInfo
from qgpu_run.panel.lines.line import (
    Line,
    Lines,
    Role,
    lanes_per_line,
    number,
    wrap_lanes,
)
from qgpu_run.panel.lines.scheduler_lines import lane_glyphs
from qgpu_run.panel.machine_view import MachineView

LABEL = 4


def named_registers(image: ProgramImage) -> tuple[list[int], list[int]]:
    """Registers and predicates that a program names."""
    used: set[int] = set()
    predicates: set[int] = set()
    for block in image.blocks:
        for code in block.slots.values():
            use = operand_use(code.name)
            for wanted, operand in ((use.a, code.a), (use.b, code.b)):
                if wanted and operand.source is Source.REG:
                    used.add(operand.register)
            if code.dst is DstKind.REG:
                used.add(code.dst_index)
            elif code.dst is DstKind.PRED:
                predicates.add(code.dst_index)
            if code.pred.index is not None:
                predicates.add(code.pred.index)
        if block.branch.cond is CondSource.PRED:
            predicates.add(block.branch.pred)
    return sorted(used), sorted(predicates)


def register_lines(
    view: MachineView,
    info: LaunchInfo,
    g: int,
    *,
    base: int = 10,
    columns: int = 80,
    every: bool = False,
) -> Lines:
    """The registers of pass `g` that the program names, or all."""
    config = view.config
    registers, predicates = named_registers(info.image)
    if every:
        registers, predicates = list(range(config.registers)), list(range(config.predicates))
    rows = view.registers[g]
    width = max([len(number(w, base)) for r in registers for w in rows[r]] + [3]) + 1
    per_line = lanes_per_line(config.lanes, LABEL, width, columns)
    exists = view.passes[g].exists
    mine = view.run is not None and view.run.pass_ == g

    def row(name: str, texts: Iterable[str], role: Role, head: Role) -> list[Line]:
        cells: Line = [
            (f"{text:>{width}}", role if exists >> lane & 1 else "dim")
            for lane, text in enumerate(texts)
        ]
        return wrap_lanes((f"{name:<{LABEL}}", head), cells, per_line)

    threads = (str(g * config.lanes + lane) for lane in range(config.lanes))
    lines = row("tid", threads, "dim", "dim") + row("lane", lane_glyphs(view, g), "run", "dim")
    head = len(lines)
    for p in predicates:
        role = _role(view.predicate_written_at[g][p], view, mine)
        bits = (str(view.predicates[g][p] >> lane & 1) for lane in range(config.lanes))
        lines += row(f"p{p}", bits, role, role or "label")
    for r in registers:
        role = _role(view.written_at[g][r], view, mine)
        lines += row(f"r{r}", (number(w, base) for w in rows[r]), role, role or "label")
    return Lines(lines, head=head)


def _role(written: int, view: MachineView, mine: bool) -> Role:
    if mine and written > view.ran_at:
        return "new"
    return "" if written >= 0 else "dim"
