"""The intermediate form: basic blocks of machine operations on virtual registers.

Registers hold 32-bit words, predicates one bit. A register may be assigned more than once; most
are assigned once. Operation names are the machine's instructions (qgpu_isa.INSTRUCTIONS), and
`mov`, which the machine does by adding zero. Nothing here knows slots or register numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from qgpu_isa.instruction import INSTRUCTIONS
from qgpu_isa.program import Status
from qgpu_isa.units import LoadStore

WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Reg:
    """A virtual register."""

    number: int

    def __str__(self) -> str:
        return f"%{self.number}"


@dataclass(frozen=True)
class Pred:
    """A virtual predicate."""

    number: int

    def __str__(self) -> str:
        return f"%p{self.number}"


@dataclass(frozen=True)
class Imm:
    """A word known when the kernel is lowered, 0 <= value < 2**32."""

    value: int

    def __str__(self) -> str:
        return f"#{self.value}" if self.value < 4096 else f"#{self.value:#x}"


class Special(Enum):
    """Values that every thread has: its number in the CTA, and its CTA's number in the grid.

    `PLACE` stands, until `link_parts` names it, for the address of the byte or half whose word the
    operation's first operand is, or else of the last byte or half that the block loads before it.
    """

    TID = "tid"
    CTAID = "ctaid"
    PLACE = "place"

    def __str__(self) -> str:
        return self.value


ACCESSES = {i.name: i.unit for i in INSTRUCTIONS if isinstance(i.unit, LoadStore)}
LOADS = {name for name, unit in ACCESSES.items() if unit.load and not unit.exclusive}
EXCLUSIVE_LOADS = {name for name, unit in ACCESSES.items() if unit.exclusive}
STORES = {name for name, unit in ACCESSES.items() if unit.store}

Value = Reg | Imm | Special
ZERO = Imm(0)


@dataclass(frozen=True)
class PredUse:
    """A predicate as an operand, perhaps inverted."""

    pred: Pred
    negate: bool = False

    def __invert__(self) -> PredUse:
        return PredUse(self.pred, not self.negate)

    def __str__(self) -> str:
        return f"{'!' if self.negate else ''}{self.pred}"


@dataclass(frozen=True)
class Origin:
    """Where an operation comes from: PTX file and line, and CUDA place if the PTX names one."""

    file: str = ""
    line: int = 0
    cuda: str = ""


@dataclass(frozen=True)
class Address:
    """The computation of a byte address; `name` is an instruction that slot A0 can do."""

    name: str = "add"
    a: Value = ZERO
    b: Value = ZERO

    def __str__(self) -> str:
        return f"[{self.name} {self.a}, {self.b}]"


@dataclass(frozen=True)
class Op:
    """One machine operation.

    `pred` selects (`sel`, `setp`, `ballot`) or guards: where a guard does not hold, `dst` keeps its
    value and memory is not accessed. Memory operations have an `address`, stores their data in `b`.
    `space` is the PTX state space of a memory operation ("" if it may be any). A `volatile` load
    is carried out as often as the program says.
    """

    name: str
    dst: Reg | Pred | None = None
    a: Value = ZERO
    b: Value = ZERO
    pred: PredUse | None = None
    address: Address | None = None
    space: str = ""
    volatile: bool = False
    origin: Origin = field(default=Origin(), compare=False)

    @property
    def is_memory(self) -> bool:
        return self.address is not None

    @property
    def has_effect(self) -> bool:
        """Whether it must be kept even if nothing reads `dst`."""
        return self.name in STORES or self.name in EXCLUSIVE_LOADS

    @property
    def stays(self) -> bool:
        """Whether the result depends on when, and with which lanes, it is computed."""
        return self.volatile or self.name == "ballot"

    @property
    def selects(self) -> bool:
        """Whether `pred` selects rather than guards."""
        return self.name in ("sel", "setp", "ballot")

    @property
    def guard(self) -> PredUse | None:
        return None if self.selects else self.pred

    @property
    def reads_a(self) -> bool:
        return self.address is None and self.name not in ("setp", "ballot")

    @property
    def reads_b(self) -> bool:
        return self.name in STORES or (self.reads_a and self.name != "mov")

    def values(self) -> Iterator[Value]:
        """The word operands."""
        if self.reads_a:
            yield self.a
        if self.reads_b:
            yield self.b
        if self.address is not None:
            yield self.address.a
            yield self.address.b

    def uses(self) -> Iterator[Reg | Pred]:
        """Registers and predicates read; a guarded destination counts, since it may stay."""
        for value in self.values():
            if isinstance(value, Reg):
                yield value
        if self.pred is not None:
            yield self.pred.pred
        if self.guard is not None and self.dst is not None:
            yield self.dst

    def with_values(self, change: dict[Value, Value]) -> Op:
        """The operation with operands replaced (not the destination)."""
        address = self.address
        if address is not None:
            address = Address(
                address.name, change.get(address.a, address.a), change.get(address.b, address.b)
            )
        return replace(
            self,
            a=change.get(self.a, self.a) if self.reads_a else self.a,
            b=change.get(self.b, self.b) if self.reads_b else self.b,
            address=address,
        )

    def __str__(self) -> str:
        operands = [str(v) for v in (self.a,) if self.reads_a]
        operands += [str(self.address)] if self.address is not None else []
        operands += [str(self.b)] if self.reads_b else []
        if self.selects:
            operands.append(str(self.pred))
        name = f"{self.name}.{self.space}" if self.space else self.name
        text = f"{name} {', '.join(operands)}"
        text = f"{self.dst} = {text}" if self.dst is not None else text
        return f"@{self.guard} {text}" if self.guard is not None else text


@dataclass(frozen=True)
class Edge:
    """A way out of a block: to a block (None: the thread exits), perhaps through a barrier."""

    target: str | None
    status: Status = Status.RUN

    def __str__(self) -> str:
        if self.target is None:
            return "exit"
        waits = {Status.WARP: "warp ", Status.CTA: "cta "}
        return waits.get(self.status, "") + self.target


EXIT = Edge(None, Status.EXIT)


@dataclass(frozen=True)
class Terminator:
    """The end of a block: `taken` where `cond` holds (None: always), `next` elsewhere.

    With `trap`, threads that take the branch end the launch with a fault.
    """

    taken: Edge
    cond: PredUse | None = None
    next: Edge = EXIT
    trap: bool = False
    origin: Origin = field(default=Origin(), compare=False)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Ways that a thread may leave by."""
        taken = () if self.trap else (self.taken,)
        return taken if self.cond is None else (*taken, self.next)

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(e.target for e in self.edges if e.target is not None)

    def __str__(self) -> str:
        taken = "trap" if self.trap else str(self.taken)
        return f"goto {taken}" if self.cond is None else f"if {self.cond} {taken} else {self.next}"


@dataclass(frozen=True)
class BasicBlock:
    """Operations in order, and a terminator.

    `store_of` names the block whose `ldx` this block completes: both must be one atomic step, so
    this block is numbered before that one.
    """

    label: str
    ops: tuple[Op, ...]
    terminator: Terminator
    store_of: str | None = None

    def __str__(self) -> str:
        head = f"{self.label}:" + (f"  (completes {self.store_of})" if self.store_of else "")
        lines = [head, *(f"  {op}" for op in self.ops), f"  {self.terminator}"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Function:
    """A kernel; execution starts at the first block."""

    name: str
    blocks: tuple[BasicBlock, ...]

    def block(self, label: str) -> BasicBlock:
        """The block of a label. Raises KeyError."""
        for block in self.blocks:
            if block.label == label:
                return block
        raise KeyError(label)

    def ops(self) -> Iterator[Op]:
        for block in self.blocks:
            yield from block.ops

    def predecessors(self) -> dict[str, list[str]]:
        """Labels of the blocks that lead to each block."""
        result: dict[str, list[str]] = {block.label: [] for block in self.blocks}
        for block in self.blocks:
            for target in dict.fromkeys(block.terminator.targets):
                result[target].append(block.label)
        return result

    def fresh(self) -> int:
        """A register and predicate number above all in use."""
        numbers = [-1]
        for op in self.ops():
            numbers += [item.number for item in op.uses()]
            if op.dst is not None:
                numbers.append(op.dst.number)
        for block in self.blocks:
            if block.terminator.cond is not None:
                numbers.append(block.terminator.cond.pred.number)
        return max(numbers) + 1

    def __str__(self) -> str:
        return f"kernel {self.name}\n" + "\n".join(str(b) for b in self.blocks) + "\n"
