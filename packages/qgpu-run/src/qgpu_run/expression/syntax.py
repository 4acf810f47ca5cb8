"""The syntax tree of an expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from qgpu_run.expression.errors import Span


@dataclass(frozen=True, eq=False)
class Number:
    """An integer, or `true` and `false`."""

    value: int
    span: Span
    truth: bool = False


@dataclass(frozen=True, eq=False)
class Word:
    """A bare name, which only some functions take."""

    name: str
    span: Span


@dataclass(frozen=True, eq=False)
class Array:
    """`[...]`."""

    items: tuple[Syntax, ...]
    span: Span


@dataclass(frozen=True, eq=False)
class Apply:
    """An operator or function and what it is applied to.

    Attributes:
        name: as written, without a module's prefix; operators have the name of their function.
        operands: in order.
        options: `name=value` arguments.
        name_span: where the name stands.
    """

    name: str
    operands: tuple[Syntax, ...]
    span: Span
    name_span: Span
    options: tuple[tuple[str, Syntax], ...] = field(default=())


Syntax = Number | Word | Array | Apply


def children(node: Syntax) -> tuple[Syntax, ...]:
    """The nodes right below."""
    match node:
        case Array():
            return node.items
        case Apply():
            return node.operands + tuple(value for _, value in node.options)
        case _:
            return ()


def post_order(root: Syntax) -> Iterator[Syntax]:
    """All nodes once, children first; without recursion, as trees may be deep."""
    stack = [(root, False)]
    seen: set[int] = set()
    while stack:
        node, ready = stack.pop()
        if ready:
            if id(node) not in seen:
                seen.add(id(node))
                yield node
        elif id(node) not in seen:
            stack.append((node, True))
            stack += [(child, False) for child in reversed(children(node))]
