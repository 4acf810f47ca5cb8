"""What names stand for inside a module, a function and its nested blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import PtxNameError, Span, UnsupportedDeclarationError
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES, ScalarType


@dataclass(frozen=True)
class RegisterSymbol:
    """A register: its index in the frame."""

    index: int
    type: ScalarType


@dataclass(frozen=True)
class VectorRegisterSymbol:
    """A `.v2` or `.v4` register; its elements are registers named `name.x` and so on."""

    elements: tuple[str, ...]


@dataclass
class MemorySymbol:
    """A variable. `address` is an address in `space`; local and param ones count from the frame.

    Dynamic shared arrays get their address after all static ones are known.
    """

    name: str
    space: str
    address: int
    size: int


@dataclass(frozen=True)
class LabelSymbol:
    """A label: an index into the function's instructions."""

    pc: int


@dataclass(frozen=True)
class TargetsSymbol:
    """The labels of a `.branchtargets`."""

    labels: tuple[str, ...]


@dataclass(frozen=True)
class PrototypeSymbol:
    """A `.callprototype` or `.calltargets`: checked by the assembler, not needed to run."""


@dataclass(frozen=True)
class FunctionSymbol:
    """A function of the module."""

    function: ast.Function


Symbol = (
    RegisterSymbol
    | VectorRegisterSymbol
    | MemorySymbol
    | LabelSymbol
    | TargetsSymbol
    | PrototypeSymbol
    | FunctionSymbol
)


@dataclass
class Scope:
    """Names of one block; a name that it lacks is looked up in the enclosing block."""

    parent: Scope | None = None
    names: dict[str, Symbol] = field(default_factory=dict)

    def declare(self, name: str, symbol: Symbol, span: Span | None) -> None:
        """Adds a name. Raises PtxNameError when the block has it already."""
        if name in self.names:
            raise PtxNameError(f"'{name}' is declared twice in one block", span=span, found=name)
        self.names[name] = symbol

    def find(self, name: str) -> Symbol | None:
        """The symbol of the innermost block that declares `name`."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


def scalar_type(name: str, span: Span | None) -> ScalarType:
    """The type of a declaration. Raises UnsupportedDeclarationError."""
    if name not in SCALAR_TYPES:
        raise UnsupportedDeclarationError(
            f"type .{name} is not supported",
            span=span,
            found=name,
            expected=[f".{known}" for known in SCALAR_TYPES],
        )
    return SCALAR_TYPES[name]


def element_count(variable: ast.Variable) -> int | None:
    """Number of elements of the variable's type, None for an array without a size."""
    count = variable.vector
    for dimension in variable.dimensions:
        if dimension is None:
            return None
        count *= dimension
    return count


def layout(variable: ast.Variable, start: int) -> tuple[int, int]:
    """Aligned address at or after `start`, and size in bytes (0 for an array without a size).

    The default alignment is that of the type, times the vector length (PTX ISA, "Alignment").
    Raises UnsupportedDeclarationError for more than 1 GiB.
    """
    unit = scalar_type(variable.type, variable.span).bytes
    align = variable.align or unit * variable.vector
    size = unit * (element_count(variable) or 0)
    if size > 1 << 30:
        raise UnsupportedDeclarationError(
            f"'{variable.name}' is larger than 1 GiB", span=variable.span
        )
    return -(-start // align) * align, size
