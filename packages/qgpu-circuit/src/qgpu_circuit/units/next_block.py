"""The smallest pending block of the pass that runs next, and the lanes that wait for it."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa import TokenClass
from qgpu_isa.program import Status

from qgpu_circuit.gates import any_of, relu, step_neurons
from qgpu_circuit.netlist import Lin, Neuron, lin, number, total
from qgpu_circuit.signals import Machine, from_sign
from qgpu_circuit.units.branch import Counters
from qgpu_circuit.units.front_end import FrontEnd
from qgpu_circuit.units.pass_scheduler import NextPass

ONE = Lin.of(1)
OFF = 512
"""More than any difference of two ranks, so that a mode that does not apply adds nothing."""


@dataclass(frozen=True)
class NextBlock:
    """What runs next.

    Attributes:
        block: its bits; if the pass cannot go on, those of the smallest block any lane waits at.
        mask: the lanes that run it.
        moved: how many lanes are in the mask or among those the pass has so far, but not in both.
        stops: whether the pass cannot go on.
        waits_for: numbers of lanes that wait for their warp and for their CTA.
    """

    block: list[Lin]
    mask: list[Lin]
    moved: Lin
    stops: Lin
    waits_for: dict[Status, Lin]


def build_next_block(
    m: Machine, front: FrontEnd, counters: Counters, following: NextPass
) -> NextBlock:
    """Ranks lanes by their next block, those that may not run last, and takes the first."""
    n, config = m.netlist, m.config
    lanes = range(config.lanes)
    modes = (
        (1 - following.resumed, counters.not_running),
        (following.resumed - following.at_cta, [s[1] for s in counters.status]),
        (following.at_cta, [s[0] for s in counters.status]),
    )
    span = 1 << config.block_bits
    not_after: dict[tuple[int, int], Lin] = {}
    for i in lanes:
        for j in lanes:
            if i == j:
                continue
            net = n.net(f"not_after[{i},{j}]")
            neurons: list[Neuron] = []
            for mode, barred in modes:
                rank = [number(counters.block[k]) + barred[k] * span for k in (i, j)]
                neurons += step_neurons(net, rank[1] - rank[0] + 1 + (mode - 1) * OFF)
            n.add(f"not_after[{i},{j}]", neurons)
            not_after[i, j] = lin(net)
    first = [
        relu(
            n,
            f"first[{i}]",
            total(not_after[i, j] for j in lanes if j > i)
            + total(1 - not_after[j, i] for j in lanes if j < i)
            - (config.lanes - 2),
        )
        for i in lanes
    ]
    block = [
        any_of(n, f"block[{k}]", [first[i] + counters.block[i][k] - 1 for i in lanes])
        for k in range(config.block_bits)
    ]
    joins = [
        [first[i], *(first[j] + not_after[i, j] + not_after[j, i] - 2 for j in lanes if j != i)]
        for i in lanes
    ]
    mask = [any_of(n, f"mask[{i}]", joins[i]) for i in lanes]
    before = _lanes_before(m, front, following)
    kept = any_of(n, "kept", [gate + before[i] - 1 for i in lanes for gate in joins[i]])
    moved = total(mask) + total(before) - 2 * kept
    running = total(1 - x for x in counters.not_running)
    waits = {}
    for status, low, high in ((Status.WARP, 1, -1), (Status.CTA, -1, 1)):
        net = n.net(f"waits/{status.name}")
        n.add(
            f"waits/{status.name}",
            [Neuron(s[0] * low + s[1] * high, ONE, ((net, 1.0),)) for s in counters.status],
        )
        waits[status] = lin(net)
    stops = relu(n, "stops", 1 - following.resumed - running)
    return NextBlock(block, mask, moved, stops, waits)


def _lanes_before(m: Machine, front: FrontEnd, following: NextPass) -> list[Lin]:
    """The lanes that the pass which runs next has so far: every EXEC and INIT leaves its own."""
    signs = m.memory(
        "lanes",
        [a + b for a, b in zip(front.mask, front.init_mask, strict=True)],
        write_enable=front.is_[TokenClass.EXEC] + front.is_[TokenClass.INIT],
        write_address=front.pass_,
        read_address=following.pass_,
    )
    return [from_sign(x) for x in signs]
