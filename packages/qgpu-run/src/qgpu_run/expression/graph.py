"""The typed graph of an expression: literals, arrays put together, and kernel launches."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu_run.expression.errors import Span
from qgpu_run.expression.types import ValueType


@dataclass(eq=False)
class Node:
    """A value of the expression.

    Attributes:
        type: of the value.
        span: where it stands in the source.
    """

    type: ValueType
    span: Span


@dataclass(eq=False)
class Literal(Node):
    """Numbers that stand in the source."""

    values: tuple[int, ...] = ()


@dataclass(eq=False)
class Gathered(Node):
    """An array of which some elements are computed; each part lies in it, in order."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Operand:
    """What a kernel reads: a value, from one of its elements on."""

    node: Node
    first: int = 0


@dataclass(eq=False)
class Call(Node):
    """One launch of a kernel.

    Its arguments are the operands, the result, then `rest` and the error word if the kernel has
    them, then `numbers`, which are sizes and choices and never values.

    Attributes:
        operation: its name in the table of operations.
        kernel: its name in the folder of kernels.
        operands: what it reads.
        numbers: the launch's numbers.
        threads: how many threads it takes; more than a CTA has are spread over several.
        one_cta: whether they must be in one.
        has_rest: whether it writes remainders.
        has_error: whether it writes an error word.
    """

    operation: str = ""
    kernel: str = ""
    operands: tuple[Operand, ...] = ()
    numbers: tuple[int, ...] = ()
    threads: int = 1
    one_cta: bool = False
    has_rest: bool = False
    has_error: bool = True


def operands(node: Node) -> tuple[Node, ...]:
    """The nodes that a node's value is made of."""
    match node:
        case Gathered():
            return node.parts
        case Call():
            return tuple(operand.node for operand in node.operands)
        case _:
            return ()


@dataclass(frozen=True)
class Graph:
    """All nodes, operands before what needs them; the last is the value of the expression."""

    source: str
    nodes: tuple[Node, ...] = field(default=())

    @property
    def root(self) -> Node:
        return self.nodes[-1]

    @property
    def calls(self) -> tuple[Call, ...]:
        """The launches, in order."""
        return tuple(node for node in self.nodes if isinstance(node, Call))
