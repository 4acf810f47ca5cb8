"""The next token: a record, a switch to another pass or block, or the end."""

from __future__ import annotations

from qgpu_isa import TokenClass
from qgpu_isa.program import Status
from qgpu_isa.vocabulary import Fault

from qgpu_circuit.gates import relu, step
from qgpu_circuit.netlist import Lin, total
from qgpu_circuit.signals import Machine
from qgpu_circuit.units.code_writer import CodeWriter
from qgpu_circuit.units.emit_records import build_records
from qgpu_circuit.units.front_end import FrontEnd
from qgpu_circuit.units.live_out import LiveOut
from qgpu_circuit.units.next_block import NextBlock
from qgpu_circuit.units.pass_scheduler import NextPass


def build_emit(
    m: Machine,
    front: FrontEnd,
    live: LiveOut,
    following: NextPass,
    block: NextBlock,
    faults: tuple[Lin, Lin, Lin],
) -> None:
    """Drives the code of the next token.

    Args:
        faults: numbers of lanes out of range, misaligned, and in a trap.
    """
    out = CodeWriter(m)
    fault = _faults(m, faults)
    any_fault = total(fault.values())
    for cause, bit in fault.items():
        out.drive(
            f"fault/{cause.name}",
            bit,
            out.class_bits(TokenClass.FAULT) | out.field(TokenClass.FAULT, "cause", cause),
        )
    build_records(m, out, front, live, any_fault)
    out.drive("end", following.ended, out.class_bits(TokenClass.END))
    _schedule(m, out, front, live, following, block, any_fault)
    out.finish()


def _faults(m: Machine, counts: tuple[Lin, Lin, Lin]) -> dict[Fault, Lin]:
    n = m.netlist
    beyond, skew, traps = counts
    return {
        Fault.OUT_OF_RANGE: step(n, "fault/range", beyond),
        Fault.MISALIGNED: step(n, "fault/align", skew - beyond * 16),
        Fault.TRAP: step(n, "fault/trap", traps - (beyond + skew) * 16),
    }


def _schedule(
    m: Machine,
    out: CodeWriter,
    front: FrontEnd,
    live: LiveOut,
    following: NextPass,
    block: NextBlock,
    any_fault: Lin,
) -> None:
    """STOP, MASK and EXEC."""
    n = m.netlist
    stops = relu(n, "stop", live.idle + block.stops - 1 - any_fault)
    warp = step(n, "stop/warp", block.waits_for[Status.WARP] + (stops - 1) * 16)
    cta = step(
        n,
        "stop/cta",
        block.waits_for[Status.CTA] - block.waits_for[Status.WARP] * 16 + (stops - 1) * 256,
    )
    out.drive("stop", stops, out.class_bits(TokenClass.STOP))
    for status, bit in ((Status.WARP, warp), (Status.CTA, cta), (Status.EXIT, stops - warp - cta)):
        out.drive(f"stop/{status.name}", bit, out.field(TokenClass.STOP, "status", status))
    places = m.vocab.field_bits(TokenClass.STOP, "block")
    for place, bit in zip(places, block.block, strict=True):
        out.drive("stop/block", stops + bit - 1, {place: 1})
    go = relu(n, "go", live.idle - block.stops - any_fault) + following.switched
    after_mask = front.is_[TokenClass.MASK]
    direct = go - block.moved
    out.drive("mask/class", go, out.class_bits(TokenClass.MASK))
    not_mask = out.class_bits(TokenClass.MASK, -1)
    execs = out.class_bits(TokenClass.EXEC)
    swap = {i: not_mask.get(i, 0) + execs.get(i, 0) for i in not_mask | execs}
    out.drive("exec/class", direct, swap)
    out.drive("exec/class_after_mask", after_mask, execs)
    for name, bits in (("lanes", block.mask), ("pass", following.pass_)):
        for place, bit in zip(m.vocab.field_bits(TokenClass.MASK, name), bits, strict=True):
            out.drive(f"mask/{name}", go + bit - 1, {place: 1})
            out.drive(f"mask/{name}_unless_exec", direct + bit - 1, {place: -1})
    fields = {
        "block": block.block,
        "pass": following.pass_,
        "phase": [following.phase],
    }
    for name, bits in fields.items():
        for place, bit in zip(m.vocab.field_bits(TokenClass.EXEC, name), bits, strict=True):
            out.drive(f"exec/{name}", direct + bit - 1, {place: 1})
            out.drive(f"exec/{name}_after_mask", after_mask + bit - 1, {place: 1})
