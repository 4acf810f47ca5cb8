"""What operations are built from: arguments checked against types, and calls of kernels.

An operation gets an `Application` and returns the node of its value. Where arguments do not fit it
raises; no kernel has run then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from qgpu_run.expression.errors import ExpressionError, Span
from qgpu_run.expression.graph import Call, Gathered, Literal, Node, Operand
from qgpu_run.expression.types import Shape, ValueType

PARTS_FROM = 12
"""Sums of at least as many numbers are taken by several threads."""

MAX_PARTS = 8


@dataclass(frozen=True)
class Application:
    """An operation applied to arguments.

    Attributes:
        source: the expression.
        name: the operation's.
        arguments: values; a `str` is a bare word.
        options: values of named arguments.
        span: where it stands.
        add: takes each node that comes into being.
    """

    source: str
    name: str
    arguments: tuple[Node, ...]
    options: Mapping[str, Node]
    words: tuple[str, ...]
    span: Span
    add: Callable[[Node], None]

    def fail(self, message: str, at: Node | None = None) -> NoReturn:
        """Raises ExpressionError."""
        raise ExpressionError(message, self.source, self.span if at is None else at.span)

    def call(
        self,
        kernel: str,
        operands: tuple[Node | Operand, ...],
        type_: ValueType,
        numbers: tuple[int, ...],
        *,
        threads: int | None = None,
        one_cta: bool = False,
        has_rest: bool = False,
        has_error: bool = True,
    ) -> Node:
        """A launch that gives a value of a type; threads default to one an element."""
        made = Call(
            type=type_,
            span=self.span,
            operation=self.name,
            kernel=kernel,
            operands=tuple(o if isinstance(o, Operand) else Operand(o) for o in operands),
            numbers=numbers,
            threads=type_.size if threads is None else threads,
            one_cta=one_cta,
            has_rest=has_rest,
            has_error=has_error,
        )
        self.add(made)
        return made

    def literal(self, node: Node, what: str) -> int:
        """The number that an argument is, where it must be written out."""
        if not isinstance(node, Literal) or not node.type.is_scalar:
            self.fail(f"{what} must be a number written out, not computed", node)
        return node.values[0]

    def array(self, parts: tuple[Node, ...], span: Span) -> Node:
        """The vector or matrix whose elements or rows are given."""
        made = gather(self.source, parts, span)
        self.add(made)
        return made

    def one_array(self) -> tuple[Node, int | None]:
        """Of `f(array)`, `f(array, axis)` or `f(scalar, scalar, ...)` the array and the axis."""
        arguments = self.arguments
        axis = self.options.get("axis")
        if axis is None and len(arguments) == 2 and not arguments[0].type.is_scalar:
            axis = arguments[1]
            arguments = arguments[:1]
        if len(arguments) > 1:
            for argument in arguments:
                if not argument.type.is_scalar:
                    self.fail(
                        f"{self.name} takes one array or several scalars; this is {argument.type}",
                        argument,
                    )
            last = arguments[-1].span.end
            return self.array(arguments, Span(arguments[0].span.start, last)), None
        array = arguments[0]
        if axis is None:
            return array, None
        number = self.literal(axis, "the axis")
        dimensions = len(array.type.shape)
        if not -dimensions <= number < dimensions:
            self.fail(f"{array.type} has no axis {number}", axis)
        return array, number % dimensions


def gather(source: str, parts: tuple[Node, ...], span: Span) -> Node:
    """The array that elements or rows make.

    Raises:
        ExpressionError: they do not fit together.
    """
    if not parts:
        raise ExpressionError("an empty list; lists hold at least one number", source, span)
    first = parts[0].type
    for part in parts:
        if part.type.shape != first.shape:
            raise ExpressionError(
                f"elements of one list differ: {first} and {part.type}", source, part.span
            )
    if len(first.shape) > 1:
        raise ExpressionError("lists are nested two deep at most", source, span)
    type_ = ValueType((len(parts), *first.shape), all(part.type.truth for part in parts))
    values: list[int] = []
    for part in parts:
        if not isinstance(part, Literal):
            return Gathered(type_, span, parts)
        values += part.values
    return Literal(type_, span, tuple(values))


Build = Callable[[Application], Node]


def common_shape(a: Application, *nodes: Node) -> Shape:
    """The shape that scalars and arrays of equal shapes have in common."""
    shapes = {node.type.shape for node in nodes if not node.type.is_scalar}
    if len(shapes) > 1:
        first, second = [n for n in nodes if not n.type.is_scalar][:2]
        if first.type.shape == second.type.shape:
            second = next(n for n in nodes if n.type.shape not in ((), first.type.shape))
        a.fail(f"shapes do not fit: {first.type} and {second.type}")
    return next(iter(shapes), ())


def elementwise(
    kernel: str,
    *choice: int,
    truth: bool = False,
    has_rest: bool = False,
    has_error: bool = True,
    keeps_truth: bool = False,
) -> Build:
    """An operation on each element of operands of one shape, or scalars."""

    def build(a: Application) -> Node:
        shape = common_shape(a, *a.arguments)
        kept = keeps_truth and all(n.type.truth for n in a.arguments)
        type_ = ValueType(shape, truth or kept)
        steps = tuple(int(not n.type.is_scalar) for n in a.arguments)
        numbers = (*choice, *(steps if len(steps) > 1 else ()), type_.size)
        return a.call(kernel, a.arguments, type_, numbers, has_rest=has_rest, has_error=has_error)

    return build


def choose(a: Application) -> Node:
    """`where(c, x, y)`."""
    shape = common_shape(a, *a.arguments)
    type_ = ValueType(shape, all(n.type.truth for n in a.arguments[1:]))
    steps = (int(not n.type.is_scalar) for n in a.arguments)
    numbers = (0, *steps, type_.size)
    return a.call("choose_number", a.arguments, type_, numbers, has_error=False)


def rows_of(array: Node, axis: int | None) -> tuple[Shape, int, int, int]:
    """How a reduction walks: shape of the result, length of a row, step in it, step to the next."""
    shape = array.type.shape
    if axis is None or len(shape) < 2:
        return (), array.type.size, 1, 0
    rows, cols = shape
    return ((cols,), rows, cols, 1) if axis == 0 else ((rows,), cols, 1, cols)


def summing(choice: int) -> Build:
    """Sum (0), mean (1), how many are true (2), how many there are (3)."""

    def build(a: Application) -> Node:
        array, axis = a.one_array()
        return row_sums(a, array, choice, *rows_of(array, axis))

    return build


def row_sums(
    a: Application, array: Node, choice: int, shape: Shape, count: int, step: int, next_row: int
) -> Node:
    """Sums of rows of `count` elements."""
    type_ = ValueType(shape)
    parts = min(MAX_PARTS, count // 4) if type_.is_scalar and count >= PARTS_FROM else 1
    numbers = (choice, count, step, next_row, parts, type_.size)
    return a.call(
        "checked_sum",
        (array,),
        type_,
        numbers,
        threads=parts if parts > 1 else type_.size,
        one_cta=parts > 1,
        has_rest=True,
    )


def reducing(
    kernel: str, *choice: int, truth: bool = False, has_error: bool = True, keeps: bool = False
) -> Build:
    """A reduction of all elements, or along an axis."""

    def build(a: Application) -> Node:
        array, axis = a.one_array()
        shape, count, step, next_row = rows_of(array, axis)
        type_ = ValueType(shape, truth or (keeps and array.type.truth))
        numbers = (*choice, count, step, next_row, type_.size)
        return a.call(kernel, (array,), type_, numbers, has_error=has_error)

    return build


def extreme(choice: int) -> Build:
    """Minimum (0) or maximum (1) of an array, of scalars, or element by element of two arrays."""
    reduce = reducing("find_extreme", choice, has_error=False, keeps=True)
    pair = elementwise("combine_numbers", choice, has_error=False, keeps_truth=True)

    def build(a: Application) -> Node:
        return pair(a) if len(a.arguments) == 2 else reduce(a)

    return build


def matmul(a: Application) -> Node:
    """`x @ y`."""
    x, y = a.arguments
    if x.type.is_scalar or y.type.is_scalar:
        a.fail(f"@ takes vectors and matrices: {x.type} and {y.type}; scalars multiply with *")
    inner = x.type.shape[-1]
    if y.type.shape[0] != inner:
        a.fail(f"shapes do not fit: {x.type} @ {y.type}")
    rows, cols = x.type.shape[:-1], y.type.shape[1:]
    width = cols[0] if cols else 1
    type_ = ValueType(rows + cols)
    numbers = (inner, width, 1, inner, width, 1, type_.size)
    return a.call("matrix_product", (x, y), type_, numbers)


def norm2(a: Application) -> Node:
    """The sum of squares of all elements."""
    (x,) = a.arguments
    n = x.type.size
    return a.call("matrix_product", (x, x), ValueType(()), (n, 1, 1, 0, 1, 0, 1))


def outer(a: Application) -> Node:
    """All products of two vectors' elements."""
    x, y = a.arguments
    for node in (x, y):
        if len(node.type.shape) != 1:
            a.fail(f"outer takes two vectors; this is {node.type}", node)
    rows, cols = x.type.size, y.type.size
    type_ = ValueType((rows, cols))
    return a.call("matrix_product", (x, y), type_, (1, cols, 0, 1, 0, 1, type_.size))


def dot_sign(a: Application) -> Node:
    """`x · y`: as `@` for two arrays, else as `*`."""
    if any(node.type.is_scalar for node in a.arguments):
        return elementwise("checked_arithmetic", 2)(a)
    return matmul(a)


def sorting(descending: int) -> Build:
    """Numbers of a vector in order."""

    def build(a: Application) -> Node:
        x = _vector(a)
        down = 1 if "desc" in a.words else descending
        return a.call("rank_order", (x,), x.type, (down, x.type.size), has_error=False)

    return build


def _vector(a: Application) -> Node:
    x = a.arguments[0]
    if len(x.type.shape) != 1:
        a.fail(f"{a.name} takes a vector; this is {x.type}", x)
    return x


def reverse(a: Application) -> Node:
    """A vector back to front, or a matrix with its last row first."""
    x = a.arguments[0]
    if x.type.is_scalar:
        a.fail(f"reverse takes a vector or matrix; this is {x.type}", x)
    cols = x.type.shape[1] if len(x.type.shape) == 2 else 1
    numbers = (x.type.size - cols, -cols, 1, cols, x.type.size)
    return a.call("rearrange", (x,), x.type, numbers, has_error=False)


def transpose(a: Application) -> Node:
    """A matrix with rows and columns exchanged; vectors stay as they are, as numpy's."""
    (x,) = a.arguments
    if len(x.type.shape) < 2:
        return x
    rows, cols = x.type.shape
    type_ = ValueType((cols, rows), x.type.truth)
    return a.call("rearrange", (x,), type_, (0, 1, cols, rows, type_.size), has_error=False)


def scanning(choice: int) -> Build:
    """Running sums (0) or products (1) of a vector."""

    def build(a: Application) -> Node:
        x = _vector(a)
        type_ = ValueType(x.type.shape)
        return a.call("running_total", (x,), type_, (choice, x.type.size), threads=1)

    return build


def diff(a: Application) -> Node:
    """Differences of a vector's neighbours."""
    x = _vector(a)
    if x.type.size < 2:
        a.fail("diff takes at least two numbers", x)
    type_ = ValueType((x.type.size - 1,))
    numbers = (1, 1, 1, type_.size)
    return a.call("checked_arithmetic", (Operand(x, 1), Operand(x)), type_, numbers)


def trace(a: Application) -> Node:
    """The sum of a matrix's diagonal."""
    (x,) = a.arguments
    if len(x.type.shape) != 2:
        a.fail(f"trace takes a matrix; this is {x.type}", x)
    rows, cols = x.type.shape
    return row_sums(a, x, 0, (), min(rows, cols), cols + 1, 0)


def item(a: Application) -> Node:
    """`x[i]` of a vector or matrix, `m[i, j]`; negative places count from the end."""
    x, *written = a.arguments
    shape = x.type.shape
    if len(written) > len(shape):
        a.fail(f"{x.type} has no element with {len(written)} places", written[0])
    places = []
    for node, length in zip(written, shape, strict=False):
        place = a.literal(node, "a place")
        if not -length <= place < length:
            a.fail(f"no place {place} in {x.type}; places are counted from 0", node)
        places.append(place % length)
    rest = shape[len(places) :]
    first = 0
    for place, length in zip([*places, *(0 for _ in rest)], shape, strict=True):
        first = first * length + place
    type_ = ValueType(rest, x.type.truth)
    numbers = (first, 0, 1, type_.size, type_.size)
    return a.call("rearrange", (x,), type_, numbers, has_error=False)


def range_(a: Application) -> Node:
    """Numbers from a first one up to and without a last one."""
    values = [a.literal(node, "each argument of range") for node in a.arguments]
    first, last, step = (0, values[0], 1) if len(values) == 1 else (*values, 1)[:3]
    if step == 0:
        a.fail("range with a step of 0", a.arguments[-1])
    count = len(range(first, last, step))
    if count == 0:
        a.fail("range without a number; its last one is left out")
    bounds = []
    for value in (first, step):
        bounds.append(Literal(ValueType(()), a.span, (value,)))
        a.add(bounds[-1])
    type_ = ValueType((count,))
    return a.call("count_up", tuple(bounds), type_, (count,), has_error=False)
