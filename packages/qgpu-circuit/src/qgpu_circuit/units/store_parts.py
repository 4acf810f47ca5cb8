"""Stores of bytes and halves: words that neighbouring lanes make together.

A bank writes whole words, so a part is stored only where all parts of its word come at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu_isa import INSTRUCTIONS
from qgpu_isa.machine_config import WORD_BITS
from qgpu_isa.units import LoadStore

from qgpu_circuit.gates import all_of, match, relu
from qgpu_circuit.netlist import Lin, NetId, Netlist, Neuron, lin, total
from qgpu_circuit.units.operands import Word

ONE = Lin.of(1)
WORD_BYTES = 4
BYTE_BITS = 2

Distances = dict[tuple[int, int], Lin]
"""For two lanes, the lower first: 0 where they address the same word, else more."""


@dataclass(frozen=True)
class Join:
    """Lanes that can make a word: from `first` on, with `size` bytes each, for instruction `op`."""

    first: int
    size: int
    op: Lin

    @property
    def lanes(self) -> range:
        return range(self.first, self.first + WORD_BYTES // self.size)


def control_row(name: str) -> LoadStore:
    """The control row of an instruction of slot MEM."""
    unit = INSTRUCTIONS[name].unit
    assert isinstance(unit, LoadStore)
    return unit


def part_stores(ops: dict[str, Lin]) -> Lin:
    """1 where the slot holds a store of less than a word."""
    rows = ((control_row(name), op) for name, op in ops.items())
    return total(op for row, op in rows if row.store and row.size < WORD_BYTES)


def find_joins(ops: dict[str, Lin], lanes: int) -> list[Join]:
    """All joins of the machine's lanes."""
    joins = []
    for name, op in ops.items():
        row = control_row(name)
        count = WORD_BYTES // row.size
        if row.store and count > 1:
            joins += [Join(i, row.size, op) for i in range(0, lanes - count + 1, count)]
    return joins


def join_lanes(
    n: Netlist, join: Join, address: list[Word], active: list[Lin], led: Lin, apart: Distances
) -> Lin:
    """1 where the lanes make a word and the first is the lowest that accesses its bank."""
    bits = []
    for k, lane in enumerate(join.lanes):
        bits += [active[lane], match(address[lane][:BYTE_BITS], k * join.size)]
    distance = total(apart[join.first, lane] for lane in join.lanes[1:])
    name = f"join{join.size}[{join.first}]"
    return relu(n, name, all_of(join.op, *bits) - distance - led)


def merge_parts(n: Netlist, joins: Sequence[Join], data: list[Word]) -> list[Word]:
    """The data of each lane, where it is a join's first with the parts of the join's lanes."""
    merged = list(data)
    for lane in sorted({join.first for join in joins}):
        own = [join for join in joins if join.first == lane]
        word = [n.net(f"merged[{lane}][{i}]") for i in range(WORD_BITS)]
        parts = total(join.op for join in own)
        for i, net in enumerate(word):
            sources = [Neuron(data[lane][i] - parts, ONE, ((net, 1.0),))]
            for join in own:
                k, bit = divmod(i, 8 * join.size)
                part = data[join.lanes[k]][bit]
                sources.append(Neuron(part + join.op - 1, ONE, ((net, 1.0),)))
            n.add(f"merged[{lane}][{i}]", sources)
        merged[lane] = [lin(net) for net in word]
    return merged


def left_to_do(
    lane: int,
    net: NetId,
    joins: Sequence[Join],
    active: Lin,
    done: Sequence[Lin],
    stores: Lin,
) -> list[Neuron]:
    """Neurons that add 1 to `net` where the lane's part is not stored."""
    neurons = [Neuron(active + stores - 1, ONE, ((net, 1.0),))]
    for join, whole in zip(joins, done, strict=True):
        if lane in join.lanes:
            neurons.append(Neuron(whole, ONE, ((net, -1.0),)))
    return neurons
