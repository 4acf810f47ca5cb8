"""Live-out records back into register rows: staging, expansion, destination."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from qgpu_isa import Slot, TokenClass
from qgpu_isa.formats import linear_shift
from qgpu_isa.machine_config import CHUNKS_PER_RECORD, NIBBLE_BITS, WORD_BITS
from qgpu_isa.program import DstKind
from qgpu_isa.vocabulary import WORD_NIBBLES

from qgpu_circuit.gates import all_of, any_of, match, relu
from qgpu_circuit.netlist import Lin, NetId, Neuron, Urgency, lin
from qgpu_circuit.signals import Machine, sign_match
from qgpu_circuit.units.front_end import FrontEnd
from qgpu_circuit.units.program_rom import RomRow, read_rom


class Stretch(Enum):
    """Stretches of layers whose ports share a copy of the row that is being written.

    Expanding the record again costs neurons that are idle; carrying the row through all layers
    would cost dimensions that are not.
    """

    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"


@dataclass(frozen=True)
class RowWrite:
    """A register row, or one group of it, that this token completes.

    Attributes:
        values: bits of the row, lane by lane; per stretch of layers a copy of its own.
        bits: the row of a predicate, a bit a lane; likewise.
        index: bits of the register's (or predicate's) number.
        to: per destination kind and group, expressions of which at most one is 1 where the token
            writes such a group (their sum says whether it does).
        rom: destination fields of each slot of the current block.
    """

    values: dict[Stretch, list[Lin]]
    bits: dict[Stretch, list[Lin]]
    index: list[Lin]
    to: dict[DstKind, list[list[Lin]]]
    rom: list[RomRow]


def build_receive(m: Machine, front: FrontEnd) -> RowWrite:
    """Stages continuation tokens, expands what is finished, looks up where it goes."""
    n = m.netlist
    rom = [read_rom(m, front, k, ("dst_kind", "dst"), "dst") for k in Slot]
    width = max(m.config.register_bits, 3)
    rows = front.rows
    index = [
        any_of(
            n,
            f"dst[{i}]",
            [(rows.finished[k] + rows.more[k]) * 2 + rom[k].field("dst")[i] - 2 for k in Slot],
        )
        for i in range(width)
    ]
    to = {
        kind: [
            [rows.writes[k][g] * 2 + sign_match(rom[k].field("dst_kind"), kind) - 2 for k in Slot]
            for g in range(m.config.groups)
        ]
        for kind in (DstKind.REG, DstKind.PRED)
    }
    values: dict[Stretch, list[Lin]] = {}
    bits: dict[Stretch, list[Lin]] = {}
    for stretch in Stretch:
        urgency = Urgency.LATE if stretch is Stretch.FIRST else Urgency.LAST
        with n.scope(stretch.value), n.urgent(urgency):
            values[stretch], bits[stretch] = _expand(m, front)
    return RowWrite(values, bits, index, to, rom)


def _expand(m: Machine, front: FrontEnd) -> tuple[list[Lin], list[Lin]]:
    """Bits of the row that the token completes, in whichever format it came; and of a BITS row.

    The groups of a row share their nets but for what tells their lanes apart: a group's record
    fills those of all groups, of which it writes one.
    """
    n, config = m.netlist, m.config
    size = config.group_lanes
    nets = [[n.net(f"row[{lane}][{i}]") for i in range(WORD_BITS)] for lane in range(size)]
    neurons: list[Neuron] = []

    def drive(gate: Lin, places: Iterable[tuple[int, int]]) -> None:
        outs = tuple((nets[lane][i], 1.0) for lane, i in places)
        neurons.append(Neuron(gate, Lin.of(1), outs))

    staged = _drive_nibbles(m, front, drive)
    is_ = front.is_
    every = range(size)
    value = front.token_field(m, TokenClass.UNIFORM, "value")
    for cls in (TokenClass.UNIFORM, TokenClass.LINEAR, TokenClass.LINEAR4):
        shift = linear_shift(config, cls)
        for i, one in enumerate(value):
            drive(all_of(one, is_[cls]), [(lane, shift + i) for lane in every])
    group_bits = size.bit_length() - 1
    own: dict[tuple[int, int], Lin] = {}
    if config.groups > 1:
        own, more = _row_neurons(m, front, staged[0], nets)
        neurons += more
    for cls, low in ((TokenClass.LINEAR, 0), (TokenClass.LINEAR4, 2)):
        inside = range(group_bits)
        drive(is_[cls], [(lane, low + i) for lane in every for i in inside if lane >> i & 1])
        if config.groups > 1:
            counts = relu(n, f"{cls.name}/group", is_[cls])
            for lane in range(size, config.lanes):
                for i in range(group_bits, config.lane_bits):
                    if lane >> i & 1:
                        own[lane, low + i] = own.get((lane, low + i), Lin()) + counts
    bits = [
        relu(n, f"BITS[{lane}]", all_of(one, is_[TokenClass.BITS]))
        for lane, one in enumerate(front.token_field(m, TokenClass.BITS, "lanes"))
    ]
    for lane, bit in enumerate(bits):
        own[lane, 0] = own.get((lane, 0), Lin()) + bit
    n.add("expand", neurons)
    row = [
        lin(nets[lane % size][i]) + own.get((lane, i), Lin())
        for lane in range(config.lanes)
        for i in range(WORD_BITS)
    ]
    return row, bits


def _drive_nibbles(
    m: Machine, front: FrontEnd, drive: Callable[[Lin, Iterable[tuple[int, int]]], None]
) -> list[list[Lin]]:
    """What GROUP and WORD records carry; of use where a record ends, when the row is written.

    Returns:
        per part of a record, what its RAW tokens carried.
    """
    config, lead = m.config, front.lead
    size, raw = config.group_lanes, config.payload_bits
    # A record of fewer tokens than fit fills the last places of the window.
    window, taps = front.stored_window(m, config.chunk_bits)
    staged = [
        m.memory(f"stage[{j}]", window, write_enable=enable, taps=taps)
        for j, enable in enumerate(front.rows.stage)
    ]
    sent = front.lead_field(m, TokenClass.GROUP, "nibbles")
    signed = front.lead_field(m, TokenClass.GROUP, "signed")[0]
    lowest = front.lead_field(m, TokenClass.GROUP, "bits")

    def drive_nibble(nibble: int, part: int, place: int, chosen: Lin) -> None:
        for bit in range(raw):
            lane, i = divmod(bit, NIBBLE_BITS)
            at = 1 + NIBBLE_BITS * nibble + i
            if at < WORD_BITS:
                drive(staged[part][place * raw + bit] + chosen * 2 - 2, [(lane, at)])

    for lane, bit in enumerate(lowest):
        drive(all_of(lead[TokenClass.GROUP], bit), [(lane, 0)])
    for count in range(WORD_NIBBLES + 1):
        chosen = all_of(lead[TokenClass.GROUP], match(sent, count))
        part, rest = divmod(max(count - 1, 0), CHUNKS_PER_RECORD)
        unused = CHUNKS_PER_RECORD - 1 - rest
        for nibble in range(part * CHUNKS_PER_RECORD, count):
            drive_nibble(nibble, part, unused + nibble % CHUNKS_PER_RECORD, chosen)
        above = range(1 + NIBBLE_BITS * count, WORD_BITS)
        for lane in range(size if above else 0):
            if count:
                top = staged[part][raw * (CHUNKS_PER_RECORD - 1) + NIBBLE_BITS * (lane + 1) - 1]
                top = top + all_of(chosen, signed) * 2 - 2
            else:
                top = all_of(chosen, signed, lowest[lane])
            drive(top, [(lane, i) for i in above])
        if count > CHUNKS_PER_RECORD:
            for nibble in range(CHUNKS_PER_RECORD):
                drive_nibble(nibble, 0, nibble, chosen)
    first = CHUNKS_PER_RECORD * raw - WORD_BITS
    for i in range(WORD_BITS):
        gate = staged[0][first + i] + lead[TokenClass.WORD] * 2 - 2
        drive(gate, [(lane, i) for lane in range(size)])
    return staged


def _row_neurons(
    m: Machine, front: FrontEnd, staged: list[Lin], nets: list[list[NetId]]
) -> tuple[dict[tuple[int, int], Lin], list[Neuron]]:
    """What ROW records carry.

    Args:
        staged: what the RAW tokens of the record carried.
        nets: bits that the groups share, those of the lanes of the first group.

    Returns:
        per lane and bit of the other groups, by how much it is more than that of the first
        group's lane; and neurons.
    """
    n, config, lead = m.netlist, m.config, front.lead[TokenClass.ROW]
    size, raw, piece = config.group_lanes, config.payload_bits, config.row_bits
    sent = front.lead_field(m, TokenClass.ROW, "pairs")
    signed = front.lead_field(m, TokenClass.ROW, "signed")[0]
    lowest = front.lead_field(m, TokenClass.ROW, "bits")
    held = 1 + piece * CHUNKS_PER_RECORD
    other = range(size, config.lanes)
    differ = {lane: [n.net(f"ROW[{lane}][{i}]") for i in range(held + 1)] for lane in other}
    neurons: list[Neuron] = []

    def drive(gate: Lin, lane: int, bits: Iterable[int]) -> None:
        """Bits from `held` on are all copies of the sign."""
        bits = list(bits)
        places = sorted({min(i, held) for i in bits})
        if lane < size:
            outs = [(nets[lane][i], 1.0) for i in bits]
            for to in range(lane + size, config.lanes, size):
                outs += [(differ[to][i], -1.0) for i in places]
        else:
            outs = [(differ[lane][i], 1.0) for i in places]
        neurons.append(Neuron(gate, Lin.of(1), tuple(outs)))

    for lane, low in enumerate(lowest):
        drive(all_of(lead, low), lane, [0])
        for count in range(CHUNKS_PER_RECORD + 1):
            chosen = all_of(lead, match(sent, count))
            first = raw * (CHUNKS_PER_RECORD - count) + piece * lane
            for pair in range(count):
                for i in range(piece):
                    bit = staged[first + raw * pair + i]
                    drive(bit + chosen * 2 - 2, lane, [1 + piece * pair + i])
            above = range(1 + piece * count, WORD_BITS)
            if count:
                top = staged[first + raw * (count - 1) + piece - 1]
                drive(top + all_of(chosen, signed) * 2 - 2, lane, above)
            else:
                drive(all_of(chosen, signed, low), lane, above)
    own = {(lane, i): lin(differ[lane][min(i, held)]) for lane in other for i in range(WORD_BITS)}
    return own, neurons
