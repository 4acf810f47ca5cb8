"""PTX as frozen nodes: what `parse_ptx` returns and what later stages read.

Every node has a `span`; spans do not take part in `==`, so two texts that mean the same module
compare equal however they are laid out. `str(node)` prints PTX that parses back to an equal node.
Names follow the PTX ISA. Nothing here knows which opcodes exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from qgpu_ptx.diagnostics import CudaLocation, Span


@dataclass(frozen=True, kw_only=True)
class Node:
    """Base of all nodes; `span` is None only in nodes that a program built itself."""

    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        from qgpu_ptx.ast_to_ptx import ast_to_ptx

        return ast_to_ptx(self)


# Operands


@dataclass(frozen=True)
class Name(Node):
    """A register, variable, label or function; `component` is the x of `%tid.x`."""

    name: str
    component: str | None = None


@dataclass(frozen=True)
class Integer(Node):
    """An integer constant, |value| < 2**64; a minus sign makes it negative."""

    value: int


@dataclass(frozen=True)
class Float(Node):
    """A floating-point constant, as written (`0f3F800000`, `1.5`)."""

    text: str


@dataclass(frozen=True)
class Vector(Node):
    """`{a, b}` or `{a, b, c, d}`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair(Node):
    """`first|second`: a destination with a second, predicate destination."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Negated(Node):
    """`!p`: a predicate operand read inverted."""

    name: Name


@dataclass(frozen=True)
class SymbolOffset(Node):
    """`symbol+4` outside brackets: an address constant."""

    name: Name
    offset: int


@dataclass(frozen=True)
class Address(Node):
    """`[base+offset]`; base is a register, a variable or a constant address."""

    base: Operand
    offset: int = 0


@dataclass(frozen=True)
class ArgumentList(Node):
    """`(a, b)` of a call."""

    elements: tuple[Operand, ...]


Operand = Name | Integer | Float | Vector | Pair | Negated | SymbolOffset | Address | ArgumentList


# Statements


@dataclass(frozen=True)
class Guard(Node):
    """`@p` or `@!p`."""

    register: str
    negated: bool = False


@dataclass(frozen=True)
class Instruction(Node):
    """One instruction; `modifiers` in source order without their dots.

    `cuda_location` is the last `.loc` before it in the function, None without one.
    """

    opcode: str
    modifiers: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()
    guard: Guard | None = None
    cuda_location: CudaLocation | None = None

    @property
    def mnemonic(self) -> str:
        """Opcode with its modifiers: `ld.global.u32`."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True)
class Label(Node):
    """`name:`."""

    name: str


@dataclass(frozen=True)
class RegisterName(Node):
    """`%r` or, with a count, `%r<16>`: the registers %r0 ... %r15."""

    name: str
    count: int | None = None

    def names(self) -> tuple[str, ...]:
        """Every register this declares."""
        if self.count is None:
            return (self.name,)
        return tuple(f"{self.name}{i}" for i in range(self.count))


@dataclass(frozen=True)
class Registers(Node):
    """`.reg .v2 .b32 a, %r<16>;` — `vector` is 1, 2 or 4; scope is the enclosing block."""

    type: str
    names: tuple[RegisterName, ...]
    vector: int = 1


@dataclass(frozen=True)
class SymbolValue(Node):
    """An address in an initialiser: `sym`, `sym+4`, `generic(sym)`; `wrapper` is `generic`."""

    name: str
    offset: int = 0
    wrapper: str | None = None


@dataclass(frozen=True)
class InitializerList(Node):
    """`{ ... }` of an initialiser, possibly nested."""

    elements: tuple[Initializer, ...]


Initializer = Integer | Float | SymbolValue | InitializerList


@dataclass(frozen=True)
class Variable(Node):
    """A variable or a parameter.

    `space` is one of reg, const, global, local, shared, param, tex. A dimension of None is an
    array without a size. `pointer` is set on `.ptr` parameters; `pointer_space` and
    `pointer_align` then describe what it points to.
    """

    space: str
    type: str
    name: str
    align: int | None = None
    vector: int = 1
    dimensions: tuple[int | None, ...] = ()
    initializer: Initializer | None = None
    linkage: tuple[str, ...] = ()
    pointer: bool = False
    pointer_space: str | None = None
    pointer_align: int | None = None
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pragma(Node):
    """`.pragma "nounroll";`."""

    strings: tuple[str, ...]


@dataclass(frozen=True)
class File(Node):
    """`.file 1 "a.cu"`, perhaps with time stamp and size."""

    index: int
    name: str
    stamp: tuple[int, int] | None = None


@dataclass(frozen=True)
class Inlined(Node):
    """`function_name label, inlined_at file line column` of a `.loc`."""

    function_label: str
    function_offset: int
    file_index: int
    line: int
    column: int


@dataclass(frozen=True)
class Location(Node):
    """`.loc file line column`."""

    file_index: int
    line: int
    column: int
    inlined: Inlined | None = None


@dataclass(frozen=True)
class BranchTargets(Node):
    """`name: .branchtargets a, b;` (or .calltargets)."""

    name: str
    targets: tuple[str, ...]
    kind: Literal["branchtargets", "calltargets"] = "branchtargets"


@dataclass(frozen=True)
class PerformanceDirective(Node):
    """`.maxntid 128, 1, 1`, `.noreturn`, or a pragma in a function's header."""

    name: str
    values: tuple[int, ...] = ()
    strings: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallPrototype(Node):
    """`name: .callprototype (returns) _ (parameters);`."""

    name: str
    returns: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    directives: tuple[PerformanceDirective, ...] = ()


@dataclass(frozen=True)
class Section(Node):
    """A `.section`; its lines are kept as text, since only debuggers read them."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Block(Node):
    """`{ ... }`: a scope for registers, variables and labels."""

    statements: tuple[Statement, ...]


Statement = (
    Registers
    | Variable
    | Label
    | BranchTargets
    | CallPrototype
    | Instruction
    | Location
    | File
    | Section
    | Pragma
    | Block
)


# Module level


@dataclass(frozen=True)
class Function(Node):
    """`.entry` or `.func`; `body` is None for a declaration."""

    kind: Literal["entry", "func"]
    name: str
    parameters: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()
    linkage: tuple[str, ...] = ()
    directives: tuple[PerformanceDirective, ...] = ()
    body: Block | None = None


Declaration = Function | Variable | File | Location | Section | Pragma


@dataclass(frozen=True)
class Module(Node):
    """A whole PTX file. `version` is kept as written; any is accepted."""

    version: str | None
    targets: tuple[str, ...]
    address_size: int
    declarations: tuple[Declaration, ...]

    @property
    def functions(self) -> tuple[Function, ...]:
        """Functions with a body, in source order."""
        return tuple(d for d in self.declarations if isinstance(d, Function) and d.body)

    @property
    def entries(self) -> tuple[Function, ...]:
        """Kernels, in source order."""
        return tuple(f for f in self.functions if f.kind == "entry")

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Variables of module scope."""
        return tuple(d for d in self.declarations if isinstance(d, Variable))

    @property
    def files(self) -> dict[int, str]:
        """CUDA file names by their `.file` index."""
        return {d.index: d.name for d in self.declarations if isinstance(d, File)}
