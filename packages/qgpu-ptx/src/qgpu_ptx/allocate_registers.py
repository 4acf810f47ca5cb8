"""Numbers for virtual registers and predicates, by colouring their interference graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qgpu_isa.machine_config import MachineConfig

from qgpu_ptx.ir import Pred, Reg
from qgpu_ptx.liveness import solve_liveness
from qgpu_ptx.register_choice import RegisterChoice
from qgpu_ptx.row_costs import Row
from qgpu_ptx.virtual_blocks import Item, VirtualBlock


@dataclass(frozen=True)
class Allocation:
    """Numbers by virtual register, and those for which there was none."""

    numbers: dict[Item, int]
    spilled: tuple[Item, ...]


def allocate_registers(
    blocks: list[VirtualBlock], config: MachineConfig, rows: Mapping[Reg, Row]
) -> Allocation:
    """Colours registers and predicates; those that do not fit are named, to be spilled.

    `rows` is what is known of the registers' rows, by which the numbers are chosen.
    """
    choice = RegisterChoice(blocks, rows)
    clashes = _interference(blocks)
    uses: dict[Item, int] = {}
    for block in blocks:
        for item in [*block.reads(), *(item for item, _ in block.writes())]:
            uses[item] = uses.get(item, 0) + 1
    numbers: dict[Item, int] = {}
    spilled: list[Item] = []
    for kind, limit in ((Reg, config.registers), (Pred, config.predicates)):
        graph = {i: {n for n in c if isinstance(n, kind)} for i, c in clashes.items()}
        graph = {i: c for i, c in graph.items() if isinstance(i, kind)}
        holders: list[list[Item]] = [[] for _ in range(limit)]
        for item in reversed(_removal_order(graph, uses, limit)):
            taken = {numbers[n] for n in graph[item] if n in numbers}
            free = [n for n in range(limit) if n not in taken]
            if free:
                best = min(free, key=lambda n: choice.badness(item, n, holders[n]))
                numbers[item] = best
                holders[best].append(item)
            else:
                spilled.append(item)
    return Allocation(numbers, tuple(spilled))


def _removal_order(graph: dict[Item, set[Item]], uses: dict[Item, int], limit: int) -> list[Item]:
    """Chaitin's order: nodes with few neighbours first, else the one that is cheapest to spill."""
    degree = {item: len(neighbours) for item, neighbours in graph.items()}
    left = dict.fromkeys(sorted(graph, key=lambda item: item.number))
    order = []
    while left:
        item = next((i for i in left if degree[i] < limit), None)
        if item is None:
            item = min(left, key=lambda i: (uses.get(i, 0) / (1 + degree[i]), i.number))
        order.append(item)
        del left[item]
        for neighbour in graph[item]:
            degree[neighbour] -= 1
    return order


def _interference(blocks: list[VirtualBlock]) -> dict[Item, set[Item]]:
    by_label = {block.label: block for block in blocks}
    reads = {label: set(block.reads()) for label, block in by_label.items()}
    writes = {
        label: {item for item, guarded in block.writes() if not guarded}
        for label, block in by_label.items()
    }
    successors = {label: block.terminator.targets for label, block in by_label.items()}
    out = solve_liveness(successors, reads, writes)
    result: dict[Item, set[Item]] = {}
    for label, block in by_label.items():
        written = [item for item, _ in block.writes()]
        for item in {*written, *reads[label]}:
            result.setdefault(item, set())
        for item in written:
            for other in {*out[label], *written} - {item}:
                result[item].add(other)
                result.setdefault(other, set()).add(item)
    return result
