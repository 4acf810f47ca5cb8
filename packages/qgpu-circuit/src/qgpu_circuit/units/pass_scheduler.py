"""Which pass runs next: the table of what every pass does, and the choice after a STOP."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa import TokenClass
from qgpu_isa.interpreter.state import PassFlag
from qgpu_isa.program import Status

from qgpu_circuit.gates import any_of, match, relu, step, step_neurons
from qgpu_circuit.netlist import Head, Lin, Neuron, lin, number, total
from qgpu_circuit.signals import Machine, field_bit, from_sign
from qgpu_circuit.units.front_end import FrontEnd


@dataclass(frozen=True)
class NextPass:
    """The pass that runs next.

    Attributes:
        pass_, phase: its number and the barrier phase from then on.
        resumed: whether it was switched to (and not simply goes on).
        at_cta: whether it is resumed from a CTA barrier.
        switched: whether this token is a STOP after which some pass runs.
        ended: whether this token is a STOP after which none is left.
    """

    pass_: list[Lin]
    phase: Lin
    resumed: Lin
    at_cta: Lin
    switched: Lin
    ended: Lin


def build_pass_scheduler(m: Machine, front: FrontEnd) -> NextPass:
    """See `qgpu_isa.interpreter.schedule_passes.switch_pass` for the rules."""
    n, config = m.netlist, m.config
    stop, execs = front.is_[TokenClass.STOP], front.is_[TokenClass.EXEC]
    flags = _pass_flags(m, front)
    passes = range(config.passes)
    phase = front.phase
    ready = [
        any_of(
            n,
            f"ready[{p}]",
            [
                flags[PassFlag.READY][p],
                flags[PassFlag.CTA0][p] + phase - 1,
                flags[PassFlag.CTA1][p] - phase,
            ],
        )
        for p in passes
    ]
    waiting = [
        any_of(
            n,
            f"waiting[{p}]",
            [flags[PassFlag.CTA0][p] - phase, flags[PassFlag.CTA1][p] + phase - 1],
        )
        for p in passes
    ]
    mine = number(front.pass_)
    above = [step(n, f"above[{p}]", p - mine) for p in passes]
    warp_low = config.passes_per_warp.bit_length() - 1
    in_warp = [
        relu(n, f"in_warp[{p}]", match(front.pass_[warp_low:], p >> warp_low)) for p in passes
    ]
    of_warp = _choose_in_warp(m, front, ready, in_warp)
    ranks: list[list[Lin]] = []
    for name, who in (("ready", ready), ("waiting", waiting)):
        ranks.append([relu(n, f"{name}/after[{p}]", who[p] + above[p] + stop - 2) for p in passes])
        ranks.append([relu(n, f"{name}/before[{p}]", who[p] - above[p] + stop - 1) for p in passes])
    picks, opened = [], []
    for p in passes:
        gates, higher = [], total(of_warp)
        for rank in ranks:
            gates.append(rank[p] - total(rank[:p]) - higher)
            higher = higher + total(rank)
        same_warp = of_warp[p % config.passes_per_warp] + in_warp[p] - 1
        opened.append(any_of(n, f"opens[{p}]", gates[2:]))
        picks.append(any_of(n, f"pick[{p}]", [same_warp, *gates[:2]]) + opened[-1])
    opens = total(opened)
    ended = relu(n, "ended", stop - total(picks))
    pass_bits = [
        relu(n, f"same_pass[{i}]", bit + execs - 1) + total(picks[p] for p in passes if p >> i & 1)
        for i, bit in enumerate(front.pass_)
    ]
    next_phase = any_of(n, "phase", [phase + execs - 1, phase + stop - 1 - opens, opens - phase])
    at_cta = any_of(
        n,
        "at_cta",
        [picks[p] + flags[PassFlag.CTA0][p] + flags[PassFlag.CTA1][p] - 1 for p in passes],
    )
    values = [*pass_bits, next_phase, stop, at_cta]
    read = [from_sign(x) for x in m.memory("next_pass", values, write_enable=execs + stop)]
    return NextPass(
        pass_=read[:-3],
        phase=read[-3],
        resumed=read[-2],
        at_cta=read[-1],
        switched=stop - ended,
        ended=ended,
    )


def _choose_in_warp(m: Machine, front: FrontEnd, ready: list[Lin], in_warp: list[Lin]) -> list[Lin]:
    """One-hot over the passes of the warp, after a STOP: which goes on; all 0 if none is ready."""
    n, config = m.netlist, m.config
    every = range(config.passes_per_warp)
    stop = front.is_[TokenClass.STOP]
    blocks, resumed_at = _stopped_at(m, front)
    able = [
        any_of(
            n,
            f"able[{i}]",
            [ready[p] + in_warp[p] - 1 for p in range(i, config.passes, config.passes_per_warp)],
        )
        for i in every
    ]
    mine = number(front.pass_[: config.passes_per_warp.bit_length() - 1])
    behind, smallest = [], []
    for i in every:
        distance = n.net(f"distance[{i}]")
        difference = blocks[i] - resumed_at
        gates = (difference, -difference)
        n.add(f"distance[{i}]", [Neuron(g, Lin.of(1), ((distance, 1.0),)) for g in gates])
        after = step(n, f"after[{i}]", i - mine)
        behind.append(relu(n, f"behind[{i}]", able[i] + after + stop - 2 - lin(distance)))
        smaller = n.net(f"smaller[{i}]")
        for j in every:
            if j != i:
                gate = blocks[i] - blocks[j] + (able[j] - 1) * config.rom_blocks
                n.add(f"smaller[{i},{j}]", step_neurons(smaller, gate))
        smallest.append(relu(n, f"smallest[{i}]", able[i] + stop - 1 - lin(smaller)))
    return [
        any_of(
            n,
            f"of_warp[{i}]",
            [
                behind[i] - total(behind[:i]),
                smallest[i] - total(smallest[:i]) - total(behind),
            ],
        )
        for i in every
    ]


def _stopped_at(m: Machine, front: FrontEnd) -> tuple[list[Lin], Lin]:
    """Numbers of the blocks at which the passes of the warp go on, and of that at which the pass
    that stops was resumed."""
    config, vocab = m.config, m.vocab
    low = config.passes_per_warp.bit_length() - 1
    block = [
        m.input(f"stop/block[{i}]", field_bit(vocab, (TokenClass.STOP,), "block", i))
        for i in range(config.block_bits)
    ]
    written = front.is_[TokenClass.STOP] + front.is_[TokenClass.INIT]

    def read(name: str, address: list[Lin]) -> list[Lin]:
        signs = m.memory(
            name, block, write_enable=written, write_address=front.pass_, read_address=address
        )
        return [from_sign(x) for x in signs]

    blocks = [
        read(f"stopped_at[{i}]", [*(Lin.of(i >> k & 1) for k in range(low)), *front.pass_[low:]])
        for i in range(config.passes_per_warp)
    ]
    # The row of a pass changes with its STOP, so what it was while the pass ran is kept apart.
    own = read("own", front.pass_)
    kept = m.memory("resumed_at", own, write_enable=front.is_[TokenClass.EXEC])
    return [number(bits) for bits in blocks], number(from_sign(x) for x in kept)


def _pass_flags(m: Machine, front: FrontEnd) -> dict[PassFlag, list[Lin]]:
    """The table: a row per pass, of which every token reads all."""
    n, config = m.netlist, m.config
    stop, inits = front.is_[TokenClass.STOP], front.is_[TokenClass.INIT]
    status = front.token_field(m, TokenClass.STOP, "status")
    exists = step(n, "exists", total(front.init_mask))

    def stopped(s: Status) -> Lin:
        return stop + match(status, s) - 1

    becomes = {
        PassFlag.READY: [stopped(Status.WARP), exists],
        PassFlag.CTA0: [stopped(Status.CTA) - front.phase],
        PassFlag.CTA1: [stopped(Status.CTA) + front.phase - 1],
        PassFlag.EXITED: [stopped(Status.EXIT), inits - exists],
    }
    new = {f: any_of(n, f"becomes/{f.name}", gates) for f, gates in becomes.items()}
    values = [
        relu(n, f"flag/{f.name}[{p}]", new[f] + match(front.pass_, p) - 1)
        for p in range(config.passes)
        for f in PassFlag
    ]
    outs = [n.net(f"pass/{f.name}[{p}]") for p in range(config.passes) for f in PassFlag]
    n.add_head(
        Head(
            name="passes",
            rows=m.shape.rows,
            write_address=tuple(front.pass_),
            write_enable=stop + inits,
            read_address=(),
            read_enable=Lin.of(1),
            values=tuple(values),
            outs=tuple(outs),
            gather=config.passes,
        )
    )
    count = len(PassFlag)
    return {f: [lin(outs[p * count + f]) for p in range(config.passes)] for f in PassFlag}
