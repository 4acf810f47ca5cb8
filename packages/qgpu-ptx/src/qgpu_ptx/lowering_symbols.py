"""What names stand for while a function is lowered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.ir import Pred, Reg, Value
from qgpu_ptx.ir_builder import Condition
from qgpu_ptx.ptx_interpreter.scalar_types import ScalarType


@dataclass
class RegisterVariable:
    """A PTX register.

    One that a single instruction sets stands for that instruction's values (`known`). Others,
    and those read before they are set, have registers of their own (`words` or `predicate`).
    """

    type: ScalarType
    assignments: int = 0
    known: tuple[Value, ...] | None = None
    known_condition: Condition | None = None
    words: tuple[Reg, ...] = ()
    predicate: Pred | None = None


@dataclass
class ParameterBlock:
    """A `.param` variable: bytes known beforehand, or a register for each of its words."""

    size: int
    data: bytes | None = None
    words: dict[int, Reg] = field(default_factory=dict)

    def word(self, offset: int, register: Callable[[], Reg]) -> Reg:
        """The register that holds the word in which a byte offset lies."""
        index = offset // 4
        if index not in self.words:
            self.words[index] = register()
        return self.words[index]


@dataclass(frozen=True)
class MemoryVariable:
    """A variable in memory: its address, as the machine's loads and stores take it."""

    space: str
    address: Value
    size: int


@dataclass(frozen=True)
class CodeLabel:
    """A label: the IR block that it begins."""

    block: str


@dataclass(frozen=True)
class TargetList:
    """The labels of a `.branchtargets`."""

    labels: tuple[str, ...]


@dataclass(frozen=True)
class VectorVariable:
    """A `.v2` or `.v4` register, by the names of its elements."""

    elements: tuple[str, ...]


Symbol = (
    RegisterVariable
    | ParameterBlock
    | MemoryVariable
    | CodeLabel
    | TargetList
    | VectorVariable
    | ast.Function
)


@dataclass
class NameScope:
    """Names of one block; what it lacks is looked up in the enclosing block."""

    parent: NameScope | None = None
    names: dict[str, Symbol] = field(default_factory=dict)

    def find(self, name: str) -> Symbol | None:
        """The symbol of the innermost block that declares `name`."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


def operand_key(name: ast.Name) -> str:
    """The name under which an operand is declared."""
    return name.name if name.component is None else f"{name.name}.{name.component}"


def instructions(block: ast.Block) -> Iterator[ast.Instruction]:
    """All instructions of a body in order."""
    for statement in block.statements:
        if isinstance(statement, ast.Instruction):
            yield statement
        elif isinstance(statement, ast.Block):
            yield from instructions(statement)


def count_assignments(block: ast.Block) -> Counter[str]:
    """How many instructions may set each register name (names of inner scopes fall together)."""
    counts: Counter[str] = Counter()
    for node in instructions(block):
        # bar.red is the one barrier with a destination.
        barrier = node.opcode in ("bar", "barrier") and "red" not in node.modifiers
        if not node.operands or barrier or node.opcode in ("st", "red", "bra"):
            continue
        for name in _names(node.operands[0]):
            counts[operand_key(name)] += 1
            counts[name.name] += name.component is not None
    return counts


def _names(operand: ast.Operand) -> Iterator[ast.Name]:
    match operand:
        case ast.Name():
            yield operand
        case ast.Pair(first=first, second=second):
            yield from _names(first)
            yield from _names(second)
        case ast.Vector(elements=elements) | ast.ArgumentList(elements=elements):
            for element in elements:
                yield from _names(element)
        case _:
            pass
