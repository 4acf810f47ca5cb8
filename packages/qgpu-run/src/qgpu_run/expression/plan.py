"""The syntax tree to the typed graph of kernel launches; all types are checked here."""

from __future__ import annotations

from qgpu_isa.suggestions import did_you_mean

from qgpu_run.expression.build import Application, gather
from qgpu_run.expression.errors import ExpressionError
from qgpu_run.expression.graph import Graph, Literal, Node, operands
from qgpu_run.expression.operations import BY_NAME, Operation
from qgpu_run.expression.parse import parse
from qgpu_run.expression.syntax import Apply, Array, Number, Syntax, Word, post_order
from qgpu_run.expression.types import ValueType

MAX_CALLS = 500

LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1


def plan(source: str) -> Graph:
    """The graph of an expression.

    Raises:
        ExpressionError: it is malformed, or its types do not fit together.
    """
    root = parse(source)
    planner = _Planner(source)
    for syntax in post_order(root):
        planner.take(syntax)
    return planner.graph(root)


class _Planner:
    def __init__(self, source: str) -> None:
        self._source = source
        self._made: dict[int, Node] = {}
        self._nodes: dict[Node, None] = {}

    def graph(self, root: Syntax) -> Graph:
        """The graph, with the nodes that the value needs; the root last."""
        last = self._node(root)
        needed = {last}
        for node in reversed(self._nodes):
            if node in needed:
                needed.update(operands(node))
        nodes = [node for node in self._nodes if node in needed and node is not last]
        graph = Graph(self._source, (*nodes, last))
        if len(graph.calls) > MAX_CALLS:
            raise ExpressionError(
                f"too long: {len(graph.calls)} launches, at most {MAX_CALLS}",
                self._source,
                last.span,
            )
        return graph

    def take(self, syntax: Syntax) -> None:
        """Plans a part whose parts are planned."""
        match syntax:
            case Number():
                if not LOWEST <= syntax.value <= HIGHEST:
                    text = syntax.span.text(self._source)
                    self._fail(f"{text} does not fit 32 bits ({LOWEST} to {HIGHEST})", syntax)
                type_ = ValueType((), syntax.truth)
                self._set(syntax, Literal(type_, syntax.span, (syntax.value,)))
            case Array():
                items = tuple(self._node(item) for item in syntax.items)
                self._set(syntax, gather(self._source, items, syntax.span))
            case Apply():
                self._set(syntax, self._apply(syntax))
            case Word():
                pass

    def _apply(self, syntax: Apply) -> Node:
        operation = BY_NAME.get(syntax.name)
        if operation is None:
            known = did_you_mean(syntax.name, BY_NAME)
            raise ExpressionError(
                f"no function '{syntax.name}'{known}", self._source, syntax.name_span
            )
        words = tuple(
            operand.name
            for operand in syntax.operands[1:]
            if isinstance(operand, Word) and operand.name in operation.words
        )
        written = [
            operand
            for operand in syntax.operands
            if not (isinstance(operand, Word) and operand.name in words)
        ]
        arguments = tuple(self._node(operand) for operand in written)
        self._check_number(operation, len(arguments), syntax)
        for name, value in syntax.options:
            if name not in operation.options:
                known = did_you_mean(name, operation.options)
                self._fail(f"{operation.name} has no argument '{name}'{known}", value)
        options = {name: self._node(value) for name, value in syntax.options}
        application = Application(
            self._source, operation.name, arguments, options, words, syntax.span, self._add
        )
        return operation.build(application)

    def _check_number(self, operation: Operation, given: int, syntax: Apply) -> None:
        least, most = operation.least, operation.most
        if least <= given <= most:
            return
        wanted = str(least) if least == most else f"{least} to {most}"
        if given < least and most > 3:
            wanted = "at least one"
        plural = "" if wanted in ("1", "at least one") else "s"
        self._fail(
            f"{operation.name} takes {wanted} argument{plural}, {given} given: {operation.form}",
            syntax,
        )

    def _node(self, syntax: Syntax) -> Node:
        if isinstance(syntax, Word):
            self._fail(f"unknown name '{syntax.name}'{did_you_mean(syntax.name, BY_NAME)}", syntax)
        return self._made[id(syntax)]

    def _set(self, syntax: Syntax, node: Node) -> None:
        self._made[id(syntax)] = node
        self._add(node)

    def _add(self, node: Node) -> None:
        self._nodes.setdefault(node)

    def _fail(self, message: str, at: Syntax) -> None:
        raise ExpressionError(message, self._source, at.span)
