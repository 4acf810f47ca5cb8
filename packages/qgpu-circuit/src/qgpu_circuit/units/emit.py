"""The next token: record formats, and the choice between records, switches and blocks."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa import Slot, TokenClass
from qgpu_isa.formats import WIDTH_BITS, wide_shape
from qgpu_isa.machine_config import CHUNKS_PER_RECORD, WORD_BITS
from qgpu_isa.program import Status
from qgpu_isa.vocabulary import Fault, Width

from qgpu_circuit.gates import all_of, match, relu, step, step_neurons
from qgpu_circuit.netlist import Lin, LinLike, NetId, Neuron, lin, total
from qgpu_circuit.signals import Machine
from qgpu_circuit.units.front_end import FrontEnd
from qgpu_circuit.units.live_out import LiveOut
from qgpu_circuit.units.next_block import NextBlock
from qgpu_circuit.units.operands import Word
from qgpu_circuit.units.pass_scheduler import NextPass

ONE = Lin.of(1)
WIDTHS = (Width.W4, Width.W8, Width.W16, Width.W32)


@dataclass(frozen=True)
class Formats:
    """Which record begins with the next token: at most one is 1."""

    direct: dict[TokenClass, Lin]
    wide: dict[Width, Lin]


class CodeWriter:
    """Collects what drives the bits of the next token's code."""

    def __init__(self, m: Machine) -> None:
        self.m = m
        self.nets = [m.netlist.net(f"out[{i}]") for i in range(m.vocab.code_bits)]

    def drive(self, name: str, gate: LinLike, bits: dict[int, int]) -> None:
        """Where `gate` is 1, adds 1 (or the given weight) to the code bits."""
        outs: tuple[tuple[NetId, float], ...] = tuple(
            (self.nets[i], 2.0 * weight) for i, weight in bits.items() if weight
        )
        if outs:
            self.m.netlist.add(f"out/{name}", [Neuron(Lin.of(gate), ONE, outs)])

    def class_bits(self, cls: TokenClass, weight: int = 1) -> dict[int, int]:
        """The class part of a code."""
        base = self.m.vocab.payload_code_bits
        width = len(self.nets) - base
        return {base + i: weight for i in range(width) if cls >> i & 1}

    def field(self, cls: TokenClass, name: str, value: int) -> dict[int, int]:
        """A constant field."""
        places = self.m.vocab.field_bits(cls, name)
        return {p: 1 for i, p in enumerate(places) if value >> i & 1}

    def finish(self) -> None:
        """Turns bits into signs and declares them the circuit's outputs."""
        bias = tuple((net, -1.0) for net in self.nets)
        self.m.netlist.add("out/bias", [Neuron(ONE, ONE, bias)])
        self.m.netlist.outputs = list(self.nets)


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
    forms = _choose(m, live)
    _leads(m, out, live, forms, any_fault)
    _continue(m, out, front, live)
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


def _choose(m: Machine, live: LiveOut) -> Formats:
    """The format of the row, if a record begins; see `qgpu_isa.formats.choose_format`."""
    n, config, vocab = m.netlist, m.config, m.vocab
    lanes, row = range(config.lanes), live.row
    begins = total(live.begins)

    def any_from(low: int) -> Lin:
        return step(n, f"any_from[{low}]", total(w[i] for w in row for i in range(low, WORD_BITS)))

    any_1, any_4, any_8 = any_from(1), any_from(4), any_from(8)
    mixed = []
    for i in range(WORD_BITS):
        net = n.net(f"mixed[{i}]")
        count = total(w[i] for w in row)
        neurons = step_neurons(net, count)
        neurons.append(Neuron(count - (config.lanes - 1), ONE, ((net, -1.0),)))
        n.add(f"mixed[{i}]", neurons)
        mixed.append(lin(net))
    unfit = n.net("unfit16")
    top = 15
    for lane in lanes:
        count = total(row[lane][top:])
        neurons = step_neurons(unfit, count)
        neurons.append(Neuron(count - (WORD_BITS - top - 1), ONE, ((unfit, -1.0),)))
        n.add(f"unfit16[{lane}]", neurons)
    large = total(row[0][vocab.small_bits :])
    plain = begins + any_1 - 1
    direct = {
        TokenClass.BITS: relu(n, "form/BITS", begins - any_1),
        TokenClass.UNIFORM: relu(n, "form/UNIFORM", plain - total(mixed) - large),
    }
    for cls, shift in ((TokenClass.LINEAR, 0), (TokenClass.LINEAR4, 2)):
        inside = range(shift, shift + config.lane_bits)
        wrong = total(
            1 - row[lane][i] if lane >> (i - shift) & 1 else row[lane][i]
            for i in inside
            for lane in lanes
        )
        others = total(mixed[i] for i in range(WORD_BITS) if i not in inside)
        direct[cls] = relu(n, f"form/{cls.name}", plain - wrong - others - large)
    uniform = relu(n, "form/any_uniform", plain - total(mixed))
    rest = (
        begins
        - direct[TokenClass.BITS]
        - uniform
        - direct[TokenClass.LINEAR]
        - direct[TokenClass.LINEAR4]
    )
    fits = [
        relu(n, "form/fits4", rest - any_4),
        relu(n, "form/fits8", rest - any_8),
        relu(n, "form/fits16", rest - lin(unfit)),
        rest,
    ]
    wide = {w: fits[k] - (fits[k - 1] if k else 0) for k, w in enumerate(WIDTHS)}
    wide[Width.U32] = uniform - direct[TokenClass.UNIFORM]
    return Formats(direct, wide)


def _leads(m: Machine, out: CodeWriter, live: LiveOut, forms: Formats, any_fault: Lin) -> None:
    """First tokens of records."""
    vocab = m.vocab
    values = {
        TokenClass.BITS: [word[0] for word in live.row],
        TokenClass.UNIFORM: live.row[0][: vocab.small_bits],
        TokenClass.LINEAR: live.row[0][: vocab.small_bits],
        TokenClass.LINEAR4: live.row[0][: vocab.small_bits],
    }
    for cls, form in forms.direct.items():
        form = form - any_fault
        out.drive(f"{cls.name}/class", form, out.class_bits(cls))
        for i, bit in enumerate(values[cls]):
            out.drive(f"{cls.name}/value[{i}]", form + bit - 1, {i: 1})
        for k in Slot:
            out.drive(
                f"{cls.name}/slot[{k.name}]", form + live.begins[k] - 1, out.field(cls, "slot", k)
            )
    wide = total(forms.wide.values()) - any_fault
    out.drive("WIDE/class", wide, out.class_bits(TokenClass.WIDE))
    for w, form in forms.wide.items():
        out.drive(f"WIDE/width[{w.name}]", form - any_fault, out.field(TokenClass.WIDE, "width", w))
    for k in Slot:
        out.drive(
            f"WIDE/slot[{k.name}]",
            wide + live.begins[k] - 1,
            out.field(TokenClass.WIDE, "slot", k),
        )


def _continue(m: Machine, out: CodeWriter, front: FrontEnd, live: LiveOut) -> None:
    """Continuation tokens, and the leads of a row's further records."""
    n, config = m.netlist, m.config
    part = front.lead_field(m, TokenClass.WIDE, "part")
    width = front.lead_field(m, TokenClass.WIDE, "width")
    slot = front.lead_field(m, TokenClass.WIDE, "slot")
    # On the lead itself, the record's fields are those of this token: the lead memory returns them.
    wide = front.is_[TokenClass.WIDE]
    in_wide = front.lead[TokenClass.WIDE]
    for w in Width:
        shape = wide_shape(config, w)
        for p in range(shape.parts):
            for c in range(shape.conts):
                at = wide if c == 0 else all_of(front.position[c], in_wide)
                chosen = relu(
                    n, f"cont/{w.name}[{p}][{c}]", all_of(at, match(width, w), match(part, p))
                )
                first = (p * CHUNKS_PER_RECORD + c) * config.payload_bits
                for i in range(config.payload_bits):
                    if first + i < shape.bits:
                        bit = _row_bit(live.row, w, first + i)
                        out.drive(f"RAW/{w.name}[{p}][{c}][{i}]", chosen + bit - 1, {i: 1})
            if p == shape.parts - 1:
                continue
            again = relu(
                n,
                f"again/{w.name}[{p}]",
                all_of(front.position[shape.conts], in_wide, match(width, w), match(part, p)),
            )
            code = out.class_bits(TokenClass.WIDE)
            code |= out.field(TokenClass.WIDE, "part", p + 1)
            code |= out.field(TokenClass.WIDE, "width", w)
            out.drive(f"again/{w.name}[{p}]", again, code)
            for k in Slot:
                out.drive(
                    f"again/{w.name}[{p}]/slot[{k.name}]",
                    all_of(again, match(slot, k)),
                    out.field(TokenClass.WIDE, "slot", k),
                )


def _row_bit(row: list[Word], width: Width, bit: int) -> Lin:
    if width is Width.U32:
        return row[0][bit]
    lane, i = divmod(bit, WIDTH_BITS[width])
    return row[lane][i]


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
    n, config = m.netlist, m.config
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
    go = relu(n, "go", live.idle - block.stops - any_fault) + following.switched
    after_mask = front.is_[TokenClass.MASK]
    full = go + total(block.mask) - config.lanes
    out.drive("mask/class", go, out.class_bits(TokenClass.MASK))
    not_mask = out.class_bits(TokenClass.MASK, -1)
    execs = out.class_bits(TokenClass.EXEC)
    swap = {i: not_mask.get(i, 0) + execs.get(i, 0) for i in not_mask | execs}
    out.drive("exec/class", full, swap)
    out.drive("exec/class_after_mask", after_mask, execs)
    lane_bits = m.vocab.field_bits(TokenClass.MASK, "lanes")
    for i, bit in enumerate(block.mask):
        out.drive(f"mask/lanes[{i}]", go + bit - 1, {lane_bits[i]: 1})
        out.drive(f"mask/lanes_unless_full[{i}]", full, {lane_bits[i]: -1})
    fields = {
        "block": block.block,
        "pass": following.pass_,
        "phase": [following.phase],
    }
    for name, bits in fields.items():
        for place, bit in zip(m.vocab.field_bits(TokenClass.EXEC, name), bits, strict=True):
            out.drive(f"exec/{name}", full + bit - 1, {place: 1})
            out.drive(f"exec/{name}_after_mask", after_mask + bit - 1, {place: 1})
