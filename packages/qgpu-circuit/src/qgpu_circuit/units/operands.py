"""Operand selection: register port, immediate, special value or an earlier slot's result."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa import INSTRUCTIONS, Slot
from qgpu_isa.instruction import unit_of_slot
from qgpu_isa.machine_config import WORD_BITS
from qgpu_isa.program import FORWARDS, Source

from qgpu_circuit.gates import relu, step_neurons
from qgpu_circuit.netlist import Lin, Neuron, lin
from qgpu_circuit.signals import Machine, from_sign, sign_match
from qgpu_circuit.units.front_end import FrontEnd
from qgpu_circuit.units.program_rom import RomRow
from qgpu_circuit.units.receive import Stretch
from qgpu_circuit.units.register_file import RowFile, lanes_of

STRETCH = {Slot.A1: Stretch.MIDDLE, Slot.A2: Stretch.LAST}

Word = list[Lin]
"""The bits of a word, lowest first."""


@dataclass(frozen=True)
class OperandSources:
    """What every operand can be chosen from."""

    front: FrontEnd
    ctaid: list[Lin]
    registers: RowFile
    results: dict[Slot, list[Word]]


def select_operand(
    m: Machine, sources: OperandSources, slot: Slot, row: RomRow, which: str
) -> list[Word]:
    """Operand `which` ("a" or "b") of a slot: clean bits, per lane."""
    n, config = m.netlist, m.config
    select = row.field(f"{which}_sel")
    wanted = {s: sign_match(select, s) for s in Source}
    port = sources.registers.port(
        f"{slot.name}.{which}",
        [from_sign(x) for x in row.field(f"{which}_reg")],
        [wanted[Source.REG]],
        stretch=STRETCH.get(slot, Stretch.FIRST),
    )
    nets = [
        [n.net(f"{which}[{lane}][{i}]") for i in range(WORD_BITS)] for lane in range(config.lanes)
    ]
    every = range(config.lanes)
    one = Lin.of(1)
    for lane, word in enumerate(lanes_of(port)):
        n.add(
            f"{which}/register[{lane}]",
            [Neuron(x, one, ((nets[lane][i], 1.0),)) for i, x in enumerate(word)],
        )
    flag = {
        s: relu(n, f"{which}/is_{s.name}", wanted[s])
        for s in (Source.IMM, Source.TID, Source.CTAID, *FORWARDS[slot])
    }
    shared: list[Neuron] = []

    def drive_all(gate: Lin, bit: int) -> None:
        shared.append(Neuron(gate, one, tuple((nets[lane][bit], 1.0) for lane in every)))

    for i, x in enumerate(row.field("imm")):
        drive_all(x + flag[Source.IMM] * 2 - 2, i)
    for i, bit in enumerate(sources.front.pass_):
        drive_all(bit + flag[Source.TID] - 1, config.lane_bits + i)
    lane_places = tuple(
        (nets[lane][i], 1.0) for lane in every for i in range(config.lane_bits) if lane >> i & 1
    )
    shared.append(Neuron(flag[Source.TID], one, lane_places))
    for i, bit in enumerate(sources.ctaid):
        drive_all(bit + flag[Source.CTAID] - 1, i)
    n.add(f"{which}/shared", shared)
    for source, producer in FORWARDS[slot].items():
        for lane, word in enumerate(sources.results[producer]):
            n.add(
                f"{which}/{producer.name}[{lane}]",
                [
                    Neuron(bit + flag[source] - 1, one, ((nets[lane][i], 1.0),))
                    for i, bit in enumerate(word)
                ],
            )
    return [[lin(net) for net in word] for word in nets]


def select_predicate(
    m: Machine, predicates: RowFile, name: str, row: RomRow, field: str
) -> list[Lin]:
    """A predicate operand per lane, negation applied; the field holds the index + 1, 0 for true."""
    n = m.netlist
    index, invert = row.field(field), row.field(f"{field}_negate")[0]
    used = [sign_match(index, v) for v in range(1, 1 << len(index))]
    always = relu(n, f"{field}/always", sign_match(index, 0))
    negate = relu(n, f"{field}/negate", invert)
    plain = predicates.port(name, [from_sign(x) for x in index], used)
    result = []
    for lane, x in enumerate(plain):
        net = n.net(f"{field}[{lane}]")
        neurons = [
            Neuron(always - negate, Lin.of(1), ((net, 1.0),)),
            Neuron(x - negate, Lin.of(1), ((net, 1.0),)),
            *step_neurons(net, negate * 3 - x - 2 - always * 3),
        ]
        n.add(f"{field}[{lane}]", neurons)
        result.append(lin(net))
    return result


def decode_ops(m: Machine, slot: Slot, row: RomRow) -> dict[str, Lin]:
    """One-hot nets over the instructions that a slot can hold, by name."""
    return {
        i.name: relu(m.netlist, f"op/{i.name}", sign_match(row.field("op"), i.opcode))
        for i in INSTRUCTIONS.for_unit(unit_of_slot(slot))
        if slot in i.slots
    }
