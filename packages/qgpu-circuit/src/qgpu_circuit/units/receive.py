"""Live-out records back into register rows: staging, expansion, destination."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from qgpu_isa import Slot, TokenClass
from qgpu_isa.formats import WIDTH_BITS, wide_shape
from qgpu_isa.machine_config import CHUNKS_PER_RECORD, WORD_BITS
from qgpu_isa.program import DstKind
from qgpu_isa.vocabulary import Width

from qgpu_circuit.gates import all_of, any_of
from qgpu_circuit.netlist import Lin, Neuron, Urgency, lin
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
    """A register row that this token completes.

    Attributes:
        values: bits of the row, lane by lane; per stretch of layers a copy of its own.
        index: bits of the register's (or predicate's) number.
        to: per destination kind, expressions of which at most one is 1 where the token writes
            such a row (their sum says whether it does).
        rom: destination fields of each slot of the current block.
    """

    values: dict[Stretch, list[Lin]]
    index: list[Lin]
    to: dict[DstKind, list[Lin]]
    rom: list[RomRow]


def build_receive(m: Machine, front: FrontEnd) -> RowWrite:
    """Stages continuation tokens, expands the finished row, looks up where it goes."""
    n = m.netlist
    rom = [read_rom(m, front, k, ("dst_kind", "dst"), "dst") for k in Slot]
    width = max(m.config.register_bits, 3)
    index = [
        any_of(
            n,
            f"dst[{i}]",
            [front.finished[k] * 2 + rom[k].field("dst")[i] - 2 for k in Slot],
        )
        for i in range(width)
    ]
    to = {
        kind: [front.finished[k] * 2 + sign_match(rom[k].field("dst_kind"), kind) - 2 for k in Slot]
        for kind in (DstKind.REG, DstKind.PRED)
    }
    values: dict[Stretch, list[Lin]] = {}
    for stretch in Stretch:
        urgency = Urgency.LATE if stretch is Stretch.FIRST else Urgency.LAST
        with n.scope(stretch.value), n.urgent(urgency):
            values[stretch] = _expand(m, front)
    return RowWrite(values, index, to, rom)


def _expand(m: Machine, front: FrontEnd) -> list[Lin]:
    """Bits of the row that the token completes, in whichever format it came."""
    n, config, vocab = m.netlist, m.config, m.vocab
    # A record of fewer tokens than fit fills the last places of the window.
    window, taps = front.stored_window(m, config.chunk_bits)
    staged = [
        m.memory(f"stage[{j}]", window, write_enable=front.stage[j], taps=taps)
        for j in range(vocab.wide_parts)
    ]
    nets = [n.net(f"row[{i}]") for i in range(config.lanes * WORD_BITS)]
    neurons: list[Neuron] = []

    def drive(gate: Lin, positions: list[int]) -> None:
        neurons.append(Neuron(gate, Lin.of(1), tuple((nets[p], 1.0) for p in positions)))

    for w in Width:
        shape = wide_shape(config, w)
        for bit in range(shape.bits):
            part, rest = divmod(bit, config.chunk_bits)
            cont, low = divmod(rest, config.payload_bits)
            place = CHUNKS_PER_RECORD - shape.conts + cont
            source = staged[part][place * config.payload_bits + low]
            drive(source + front.wide_done[w] * 2 - 2, _places(config.lanes, w, bit))
    every = range(config.lanes)
    is_ = front.is_
    for lane, one in enumerate(front.token_field(m, TokenClass.BITS, "lanes")):
        drive(all_of(one, is_[TokenClass.BITS]), [lane * WORD_BITS])
    uniform = is_[TokenClass.UNIFORM] + is_[TokenClass.LINEAR] + is_[TokenClass.LINEAR4]
    for i, one in enumerate(front.token_field(m, TokenClass.UNIFORM, "value")):
        drive(all_of(one, uniform), [lane * WORD_BITS + i for lane in every])
    for cls, shift in ((TokenClass.LINEAR, 0), (TokenClass.LINEAR4, 2)):
        places = [
            lane * WORD_BITS + shift + i
            for lane in every
            for i in range(config.lane_bits)
            if lane >> i & 1
        ]
        drive(is_[cls], places)
    n.add("expand", neurons)
    return [lin(net) for net in nets]


def _places(lanes: int, width: Width, bit: int) -> list[int]:
    """Row positions that bit `bit` of a WIDE record fills, sign extension included."""
    if width is Width.U32:
        return [lane * WORD_BITS + bit for lane in range(lanes)]
    lane, i = divmod(bit, WIDTH_BITS[width])
    if width is Width.W16 and i == WIDTH_BITS[width] - 1:
        return [lane * WORD_BITS + j for j in range(i, WORD_BITS)]
    return [lane * WORD_BITS + i]
