"""The block that runs, stage by stage, with the values that tokens tell."""

from __future__ import annotations

from qgpu_isa.canonical import operand_use
from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.program import DstKind, Operand, SlotCode, Source, Status
from qgpu_isa.units import LoadStore

from qgpu_run.panel.describe_token import lanes_text
from qgpu_run.panel.lane_places import holds
from qgpu_run.panel.lines.line import (
    Line,
    Lines,
    Role,
    lanes_per_line,
    number,
    wrap_lanes,
)
from qgpu_run.panel.lines.program_lines import block_line, block_texts
from qgpu_run.panel.machine_view import Execution, MachineView, Row

LABEL = 8
"""Columns in front of a row's values."""


def block_lines(view: MachineView, *, base: int = 10, columns: int = 80) -> Lines:
    """The stages of the execution that is going on, or was the last."""
    run = view.run
    block = None if run is None else view.block(run.block)
    if run is None or block is None:
        return Lines([[("no block has run yet", "dim")]])
    texts = dict(block_texts(tuple(view.rom[run.block])))
    rows: list[tuple[str, Row | str, Role]] = []
    for slot in Slot:
        code = block.slots.get(slot)
        if code is not None:
            rows.append((" ".join(block_line(texts[slot])), "", ""))
            rows += _operands(view, run, code)
            rows.append(_result(view, slot, code))
    words = (len(number(w, base)) for _, row, _ in rows if not isinstance(row, str) for w in row)
    width = max([2, *words]) + 1
    per_line = lanes_per_line(view.config.lanes, LABEL, width, columns)
    active = lanes_text(run.mask, view.config)
    lines: list[Line] = [
        [
            (f"block {run.block}", "run" if view.cta_runs else ""),
            (f"  pass {run.pass_}, lanes {active}", ""),
        ]
    ]
    numbers: Line = [(f"{lane:>{width}}", "dim") for lane in range(view.config.lanes)]
    lines += wrap_lanes(("  lane".ljust(LABEL), "dim"), numbers, per_line)
    head = len(lines)
    for label, row, role in rows:
        if isinstance(row, str):
            lines.append([(f"{label:<{LABEL}} {row}" if row else label, role or "label")])
            continue
        cells: Line = [
            (f"{number(word, base):>{width}}", role if run.mask >> lane & 1 else "dim")
            for lane, word in enumerate(row)
        ]
        lines += wrap_lanes((f"{label:<{LABEL}}", role), cells, per_line)
    lines.append([(texts[None], "label")])
    return Lines(lines + _branch(view, run), head=head)


def _operands(
    view: MachineView, run: Execution, code: SlotCode
) -> list[tuple[str, Row | str, Role]]:
    use = operand_use(code.name)
    rows: list[tuple[str, Row | str, Role]] = []
    for used, operand in ((use.a, code.a), (use.b, code.b)):
        row = _operand(view, run, operand)
        if used and row is not None and row not in rows:
            rows.append(row)
    if code.pred.index is not None:
        mask = holds(view.config, code.pred, view.before_predicates)
        name = f"{'!' if code.pred.negate else ''}p{code.pred.index}"
        label = f"  {name}" if use.selector else f"  @{name}"
        rows.append((label, tuple(mask >> i & 1 for i in range(view.config.lanes)), ""))
    return rows


def _operand(
    view: MachineView, run: Execution, operand: Operand
) -> tuple[str, Row | str, Role] | None:
    """An operand that tokens tell; immediates stand in the instruction."""
    lanes = view.config.lanes
    match operand.source:
        case Source.REG:
            return f"  r{operand.register}", view.before[operand.register], ""
        case Source.TID:
            return "  tid", tuple(run.pass_ * lanes + lane for lane in range(lanes)), ""
        case Source.CTAID:
            return "  ctaid", (view.cta or 0,) * lanes, ""
    return None


def _result(view: MachineView, slot: Slot, code: SlotCode) -> tuple[str, Row | str, Role]:
    unit = INSTRUCTIONS[code.name].unit
    if isinstance(unit, LoadStore) and unit.store and code.dst is DstKind.NONE:
        return "  =", "to memory", "dim"
    if code.dst is DstKind.NONE:
        return "  =", "only within the block", "dim"
    label = f"  = {'r' if code.dst is DstKind.REG else 'p'}{code.dst_index}"
    if slot in view.results and view.sending is not slot:
        return label, view.results[slot], "new"
    if view.sending is slot:
        return label, "is being sent", "wait"
    return label, "not sent yet" if view.cta_runs else "not sent", "dim"


def _branch(view: MachineView, run: Execution) -> list[Line]:
    """Where the lanes go, as far as it is known."""
    if not view.left_block and view.fault is None:
        return [[("  has only begun", "dim")]]
    found: dict[str, int] = {}
    for lane, places in enumerate(view.passes[run.pass_].lanes):
        if run.mask >> lane & 1:
            texts = sorted(
                "exit"
                if place.status is Status.EXIT
                else {Status.WARP: "warp ", Status.CTA: "CTA "}.get(place.status, "")
                + str(place.block)
                for place in places
            )
            where = " or ".join(texts) or "?"
            found[where] = found.get(where, 0) | 1 << lane
    return [
        [(f"  lanes {lanes_text(mask, view.config)} to {where}", "")]
        for where, mask in sorted(found.items())
    ]
