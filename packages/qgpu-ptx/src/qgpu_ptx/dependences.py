"""What must come before what among the operations of one block."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu_ptx.flow_graph import terminator_uses
from qgpu_ptx.ir import ACCESSES, LOADS, WORD, BasicBlock, Imm, Op, Pred, Reg

Item = Reg | Pred


@dataclass
class Dependences:
    """Ordering of a block's operations by index; the terminator has the index behind the last.

    Attributes:
        makers: for each operation, which earlier one makes a register that it reads.
        readers: for each operation, those that read its result.
        apart: pairs (earlier, later) that cannot share a machine block.
        ordered: pairs (earlier, later) that can, but not the other way round.
    """

    makers: list[dict[Item, int]]
    readers: list[set[int]]
    apart: set[tuple[int, int]] = field(default_factory=set)
    ordered: set[tuple[int, int]] = field(default_factory=set)


def find_dependences(block: BasicBlock) -> Dependences:
    """All dependences of a block."""
    count = len(block.ops)
    result = Dependences([{} for _ in range(count + 1)], [set() for _ in range(count + 1)])
    last_write: dict[Item, int] = {}
    last_reads: dict[Item, list[int]] = {}
    memory: list[int] = []
    ballots: list[int] = []
    for index, op in enumerate(block.ops):
        for item in set(op.uses()):
            _read(result, last_write, last_reads, item, index)
        if op.dst is not None:
            for reader in last_reads.get(op.dst, ()):
                if reader != index:
                    result.ordered.add((reader, index))
            if op.dst in last_write:
                result.apart.add((last_write[op.dst], index))
            last_write[op.dst] = index
            last_reads[op.dst] = []
        if op.name == "ballot":
            # Lanes that lose a bank would be missing.
            result.apart |= {(other, index) for other in memory}
            ballots.append(index)
        if op.is_memory:
            result.apart |= {(other, index) for other in ballots}
            for other in memory:
                base = op.address.a if op.address is not None else None
                same_base = not isinstance(base, Reg) or last_write.get(base, -1) < other
                if may_meet(block.ops[other], op, same_base=same_base):
                    result.apart.add((other, index))
            memory.append(index)
    for item in terminator_uses(block):
        _read(result, last_write, last_reads, item, count)
    for index in range(count):
        result.ordered.add((index, count))
    return result


def _read(
    result: Dependences,
    last_write: dict[Item, int],
    last_reads: dict[Item, list[int]],
    item: Item,
    index: int,
) -> None:
    last_reads.setdefault(item, []).append(index)
    if item in last_write:
        maker = last_write[item]
        result.makers[index][item] = maker
        result.readers[maker].add(index)
        result.ordered.add((maker, index))


def may_meet(first: Op, second: Op, *, same_base: bool = True) -> bool:
    """Whether the order of two accesses can matter.

    `same_base` says that a register which is the base of both holds the same address.
    """
    if first.name in LOADS and second.name in LOADS:
        return False
    spaces = {first.space, second.space}
    if "const" in spaces:
        return False
    if "" not in spaces and len(spaces) == 2:
        return False
    a, b = first.address, second.address
    # One base with constant offsets as far apart as the first one is wide cannot meet.
    if not same_base or a is None or b is None or (a.name, a.a) != (b.name, b.a):
        return True
    if isinstance(a.b, Imm) and isinstance(b.b, Imm) and a.name != "and":
        distance = b.b.value - a.b.value & WORD
        return distance < _width(first) or -distance & WORD < _width(second)
    return True


def _width(op: Op) -> int:
    """Bytes that an access reads or may write."""
    return ACCESSES[op.name].size if op.name in LOADS else 4
