"""The end of a block: where each lane goes, and the lanes' program counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu_isa import TokenClass
from qgpu_isa.encoding import BRANCH_PART
from qgpu_isa.program import CondSource, Status

from qgpu_circuit.gates import any_of, relu
from qgpu_circuit.netlist import Lin, Neuron, lin
from qgpu_circuit.signals import Machine, from_sign, sign_match
from qgpu_circuit.units.front_end import FrontEnd
from qgpu_circuit.units.program_rom import RomRow, read_rom
from qgpu_circuit.units.register_file import RowFile

ONE = Lin.of(1)


@dataclass(frozen=True)
class Counters:
    """What each lane of the pass that runs next waits for.

    Attributes:
        block: per lane, the bits of its next block.
        status: per lane, the bits of its status.
        not_running: per lane, whether the status is another than RUN.
    """

    block: list[list[Lin]]
    status: list[list[Lin]]
    not_running: list[Lin]


@dataclass(frozen=True)
class BranchResult:
    """Counters as they are after the token, and how many lanes ran into a trap."""

    counters: Counters
    traps: Lin


def build_branch(
    m: Machine,
    front: FrontEnd,
    predicates: RowFile,
    mask: list[Lin],
    flags: tuple[list[Lin], list[Lin]],
    read_pass: Sequence[Lin],
) -> BranchResult:
    """Conditions, targets, and the rows of program counters (one head a lane).

    Args:
        mask: lanes that executed the block.
        flags: comparison flags of slots A1 and A2.
        read_pass: pass whose counters are read.
    """
    n, config = m.netlist, m.config
    row = read_rom(
        m,
        front,
        BRANCH_PART,
        (
            "taken",
            "taken_status",
            "next",
            "next_status",
            "cond",
            "cond_pred",
            "cond_negate",
            "trap",
        ),
        "branch",
    )
    source = {c: relu(n, f"source/{c.name}", sign_match(row.field("cond"), c)) for c in CondSource}
    negate = relu(n, "negate", row.field("cond_negate")[0])
    plain = predicates.port(
        "branch",
        [from_sign(x) for x in row.field("cond_pred")],
        [sign_match(row.field("cond"), CondSource.PRED)],
    )
    if_true, if_false = _targets(m, front, row, negate)
    late = source[CondSource.FLAG_A2]
    traps = n.net("traps")
    trap = relu(n, "trap", row.field("trap")[0])
    rows, counters = [], Counters([], [], [])
    inits = front.is_[TokenClass.INIT]
    for lane in range(config.lanes):
        early = any_of(
            n,
            f"early[{lane}]",
            [
                source[CondSource.ALWAYS],
                plain[lane] + source[CondSource.PRED] * 2 - 2,
                flags[0][lane] + source[CondSource.FLAG_A1] - 1,
            ],
        )
        flag, ran = flags[1][lane], mask[lane]
        values = []
        for j, (yes, no) in enumerate(zip(if_true, if_false, strict=True)):
            gates = [
                ran + yes + early - 2,
                ran + no - 1 - early - late,
                ran + yes + flag + late - 3,
                ran + no + late - 2 - flag,
            ]
            if j < config.block_bits:
                # Lanes that lost their bank stay at this block, running.
                gates.append(front.mask[lane] - mask[lane] + front.block[j] - 1)
            values.append(any_of(n, f"next[{lane}][{j}]", gates))
        absent = inits - front.init_mask[lane]
        # As a lane that has exited: all ones.
        rows.append([v + absent for v in values])
        trapped = ran + trap - 1
        n.add(
            f"traps[{lane}]",
            [
                Neuron(gate, ONE, ((traps, 1.0),))
                for gate in (
                    trapped + early - 1 - negate,
                    trapped + negate - 1 - early - late,
                    trapped + flag + late - 2 - negate,
                    trapped + negate + late - 2 - flag,
                )
            ],
        )
    for lane in range(config.lanes):
        read = m.memory(
            f"counter[{lane}]",
            rows[lane],
            write_enable=front.mask[lane] + inits,
            write_address=front.pass_,
            read_address=read_pass,
        )
        bits = [from_sign(x) for x in read]
        counters.block.append(bits[: config.block_bits])
        counters.status.append(bits[config.block_bits : -1])
        counters.not_running.append(bits[-1])
    return BranchResult(counters, lin(traps))


def _targets(m: Machine, front: FrontEnd, row: RomRow, negate: Lin) -> tuple[list[Lin], list[Lin]]:
    """Targets of the flag itself (negation swaps them): block, status, whether not running."""
    n, config = m.netlist, m.config
    execs = front.is_[TokenClass.EXEC]

    def signs(side: str) -> list[list[Lin]]:
        block = [[x] for x in row.field(side)[: config.block_bits]]
        status = row.field(f"{side}_status")
        stopped = [sign_match(status, s) for s in Status if s is not Status.RUN]
        return [*block, *([x] for x in status), stopped]

    taken, other = signs("taken"), signs("next")
    result = []
    for name, straight, swapped in (("true", taken, other), ("false", other, taken)):
        result.append(
            [
                any_of(
                    n,
                    f"if_{name}[{j}]",
                    [*(x - negate + execs - 1 for x in a), *(x + negate + execs - 2 for x in b)],
                )
                for j, (a, b) in enumerate(zip(straight, swapped, strict=True))
            ]
        )
    return result[0], result[1]
