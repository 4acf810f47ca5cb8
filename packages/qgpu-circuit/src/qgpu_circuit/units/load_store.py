"""Slot MEM: faults, bank arbitration, routing, and the banks themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu_isa import INSTRUCTIONS, TokenClass
from qgpu_isa.machine_config import WORD_BITS, MachineConfig

from qgpu_circuit.gates import any_of, match, relu, step_neurons
from qgpu_circuit.netlist import Lin, Neuron, Urgency, lin, number, total
from qgpu_circuit.signals import Machine
from qgpu_circuit.units.front_end import FrontEnd
from qgpu_circuit.units.operands import Word
from qgpu_circuit.units.store_parts import (
    WORD_BYTES,
    Distances,
    control_row,
    find_joins,
    join_lanes,
    left_to_do,
    merge_parts,
    part_stores,
)

ONE = Lin.of(1)
BYTE_BITS = 2
COMPARE_BITS = 4
"""Address bits compared at a time: small enough for exact sums of differences."""


@dataclass(frozen=True)
class MemoryResult:
    """What slot MEM did.

    Attributes:
        words: the loaded word per lane (0 for lanes that did not load).
        mask: lanes that execute the block: the pass's mask less those that lost a bank.
        out_of_range, misaligned: number of lanes with that fault (0 where there is none).
    """

    words: list[Word]
    mask: list[Lin]
    out_of_range: Lin
    misaligned: Lin


def build_load_store(
    m: Machine,
    front: FrontEnd,
    ops: dict[str, Lin],
    address: list[Word],
    data: list[Word],
    pred: list[Lin],
) -> MemoryResult:
    """The memory unit.

    Args:
        address: byte address per lane (the result of slot A0).
        data: word to store, per lane.
        pred: guard per lane.
    """
    n, config = m.netlist, m.config

    def where(flag: str) -> Lin:
        return total(ops[name] for name in ops if getattr(INSTRUCTIONS[name].unit, flag))

    lanes = range(config.lanes)
    access = total(ops.values())
    active = [relu(n, f"active[{i}]", front.mask[i] + pred[i] + access - 2) for i in lanes]
    # Early, so that the address does not have to live until the end for the sake of a fault.
    with n.urgent(Urgency.EARLY):
        faults = _faults(m, ops, address, active)
    word = [address[i][BYTE_BITS : BYTE_BITS + config.address_bits] for i in lanes]
    lose, led, apart = _conflicts(m, word, active, where("exclusive"))
    joins = find_joins(ops, config.lanes)
    done = [join_lanes(n, join, address, active, led[join.first], apart) for join in joins]
    banks = [
        [relu(n, f"bank[{i}][{b}]", match(word[i][: config.lane_bits], b)) for b in lanes]
        for i in lanes
    ]
    lead = [
        [relu(n, f"lead[{i}][{b}]", active[i] + banks[i][b] - 1 - led[i]) for b in lanes]
        for i in lanes
    ]
    loads = where("load")
    take = [
        [relu(n, f"take[{i}][{b}]", active[i] + banks[i][b] + loads - 2 - lose[i]) for b in lanes]
        for i in lanes
    ]
    stores = [[total(ops[name] for name in ops if _stores_words(name))] for _ in lanes]
    for join, whole in zip(joins, done, strict=True):
        stores[join.first].append(whole)
    read = _banks(m, front, word, merge_parts(n, joins, data), lead, stores)
    words = []
    for i in lanes:
        nets = [n.net(f"loaded[{i}][{j}]") for j in range(WORD_BITS)]
        n.add(
            f"loaded[{i}]",
            [
                Neuron(read[b][j] + take[i][b] * 2 - 2, ONE, ((net, 1.0),))
                for j, net in enumerate(nets)
                for b in lanes
            ],
        )
        words.append([lin(net) for net in nets])
        n.add(f"left[{i}]", left_to_do(i, nets[0], joins, active[i], done, part_stores(ops)))
    mask = [relu(n, f"mask[{i}]", front.mask[i] - lose[i]) for i in lanes]
    return MemoryResult(words, mask, *faults)


def _stores_words(name: str) -> bool:
    unit = control_row(name)
    return unit.store and unit.size == WORD_BYTES


def _faults(
    m: Machine, ops: dict[str, Lin], address: list[Word], active: list[Lin]
) -> tuple[Lin, Lin]:
    """Numbers of lanes out of range and misaligned.

    Weights make one threshold of three cases: a word needs both low bits 0, a half the lowest.
    """
    n = m.netlist
    byte, half = (
        total(op for name, op in ops.items() if control_row(name).size == s) for s in (1, 2)
    )
    beyond, skew = n.net("out_of_range"), n.net("misaligned")
    for i, word in enumerate(address):
        off = (active[i] - 1) * 2 * WORD_BITS
        n.add(f"range[{i}]", step_neurons(beyond, _beyond(m, word, i) + off))
        low = word[0] * 3 + word[1] - half * 2 - byte * 4
        n.add(f"align[{i}]", step_neurons(skew, low + off))
    return lin(beyond), lin(skew)


def _beyond(m: Machine, address: Word, lane: int) -> Lin:
    """A count that is positive where the word address is not below the memory's size."""
    config = m.config
    word = address[BYTE_BITS:]
    high = total(word[config.address_bits :])
    if config.memory_words == 1 << config.address_bits:
        return high
    low = (config.memory_words & -config.memory_words).bit_length() - 1
    top = number(word[low : config.address_bits])
    limit = config.memory_words >> low
    net = m.netlist.net(f"above[{lane}]")
    m.netlist.add(f"above[{lane}]", step_neurons(net, top - limit + 1))
    return high + lin(net)


def _conflicts(
    m: Machine, word: list[Word], active: list[Lin], exclusive: Lin
) -> tuple[list[Lin], list[Lin], Distances]:
    """Per lane: how many lower lanes it loses its bank to, and how many share its bank.

    Also, for every two lanes, a number that is 0 where they address the same word.
    """
    n, config = m.netlist, m.config
    lose, led = [], []
    apart: Distances = {}
    for j in range(config.lanes):
        lost, shared = n.net(f"lose[{j}]"), n.net(f"led[{j}]")
        neurons: list[Neuron] = []
        for i in range(j):
            bank = _distance(m, f"bank_distance[{i},{j}]", word[i], word[j], 0, config.lane_bits)
            row = _distance(
                m, f"row_distance[{i},{j}]", word[i], word[j], config.lane_bits, len(word[i])
            )
            apart[i, j] = bank + row
            both = (active[i] + active[j] - 2) * 64 - bank * 64
            neurons += step_neurons(lost, row + exclusive + both)
            neurons.append(Neuron(active[i] + active[j] - 1 - bank, ONE, ((shared, 1.0),)))
        n.add(f"arbitrate[{j}]", neurons)
        lose.append(lin(lost))
        led.append(lin(shared))
    return lose, led, apart


def _distance(m: Machine, name: str, x: Word, y: Word, low: int, high: int) -> Lin:
    """A number that is 0 where two bit fields are equal, else 1 to 60."""
    net = m.netlist.net(name)
    neurons = []
    for k in range(low, high, COMPARE_BITS):
        cut = slice(k, min(k + COMPARE_BITS, high))
        difference = number(x[cut]) - number(y[cut])
        neurons.append(Neuron(difference, ONE, ((net, 1.0),)))
        neurons.append(Neuron(-difference, ONE, ((net, 1.0),)))
    m.netlist.add(name, neurons)
    return lin(net)


def bank_rows(config: MachineConfig) -> int:
    """Words of one bank."""
    return config.memory_words // config.lanes


def _banks(
    m: Machine,
    front: FrontEnd,
    word: list[Word],
    data: list[Word],
    lead: list[list[Lin]],
    stores: list[list[Lin]],
) -> list[list[Lin]]:
    """Routes addresses and data to the banks; returns the words they read, as sign codes.

    `stores` are, per lane, what lets its word be written where the lane leads its bank.
    Host records write through the same port: their address stands in the record's lead.
    """
    n, config = m.netlist, m.config
    lanes = range(config.lanes)
    row_bits = min((m.shape.rows - 1).bit_length(), config.address_bits - config.lane_bits)
    groups = -(-bank_rows(config) // m.shape.rows)
    host_word = front.lead_field(m, TokenClass.MEM, "address")
    host_row, host_data = host_word[config.lane_bits :], front.word_window(m, WORD_BITS)
    rows = [word[i][config.lane_bits :] for i in lanes]
    out = []
    for b in lanes:
        with n.scope(f"bank{b}"):
            host = relu(n, "host", match(host_word[: config.lane_bits], b) + front.memory_done - 1)
            sources: Sequence[tuple[Lin, Word, Word]] = [
                *((lead[i][b], rows[i], data[i]) for i in lanes),
                (host, host_row, host_data),
            ]
            address = [
                any_of(n, f"row[{k}]", [go + row[k] - 1 for go, row, _ in sources])
                for k in range(row_bits)
            ]
            value = [
                any_of(n, f"data[{k}]", [go + bits[k] - 1 for go, _, bits in sources])
                for k in range(WORD_BITS)
            ]
            nets = [n.net(f"read[{k}]") for k in range(WORD_BITS)]
            names = []
            for g in range(groups):
                hits = [match(row[row_bits:], g) for _, row, _ in sources]
                at = [go + hit - 1 for (go, _, _), hit in zip(sources, hits, strict=True)]
                writes = [at[i] + store - 1 for i in lanes for store in stores[i]] + [at[-1]]
                m.memory(
                    f"rows[{g}]",
                    value,
                    write_enable=any_of(n, f"write[{g}]", writes),
                    read_enable=any_of(n, f"read_enable[{g}]", at[:-1]),
                    write_address=address,
                    read_address=address,
                    outs=nets,
                )
                names.append(n.path(f"rows[{g}]"))
            m.memory_heads.append(names)
            out.append([lin(net) for net in nets])
    return out
