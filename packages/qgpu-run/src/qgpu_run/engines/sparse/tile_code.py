"""Loops over tiles whose sums stay in one vector register, written as LLVM code.

LLVM does not find this vectorisation by itself: it cannot know that the arrays do not overlap, so
it keeps sums in memory. Products and sums are rounded one by one, as those of single columns are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

TILE = 16
"""Columns of a tile: the float32 numbers of a 512-bit register."""

_SILU_EXACT_BITS = 0x42D00000
"""104 in float32: from here on SiLU is x, or -0."""

SUMS = 4
"""Sums that are added to in turn, so that an addition need not wait for the one before."""

_FLOAT, _INT, _LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, TILE)
_BITS = ir.VectorType(_INT, TILE)
_FLOAT_BYTES = 4


class _Code:
    """Writes the code of one intrinsic; arrays are its arguments by position."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.builder = builder
        self.arguments = arguments
        self._context, self._types = context, signature.args

    def array(self, index: int) -> Any:
        """Pointer to the numbers of an array."""
        make = self._context.make_array(self._types[index])
        return make(self._context, self.builder, self.arguments[index]).data

    def length(self, index: int) -> Any:
        """Size of an array's first axis."""
        make = self._context.make_array(self._types[index])
        shape = make(self._context, self.builder, self.arguments[index]).shape
        return self.builder.extract_value(shape, 0)

    def number(self, pointer: Any, index: Any) -> Any:
        return self.builder.load(self.builder.gep(pointer, [index]))

    def load(self, pointer: Any, row: Any) -> Any:
        return self.builder.load(self._tile(pointer, row), align=_FLOAT_BYTES)

    def store(self, vector: Any, pointer: Any, row: Any) -> None:
        self.builder.store(vector, self._tile(pointer, row), align=_FLOAT_BYTES)

    def _tile(self, pointer: Any, row: Any) -> Any:
        first = self.builder.gep(pointer, [self.builder.mul(row, ir.Constant(_LONG, TILE))])
        return self.builder.bitcast(first, _VECTOR.as_pointer())

    def spread(self, number: Any) -> Any:
        """A vector of equal numbers."""
        none = ir.Constant(_VECTOR, ir.Undefined)
        one = self.builder.insert_element(none, number, ir.Constant(_INT, 0))
        return self.builder.shuffle_vector(one, none, ir.Constant(_BITS, [0] * TILE))

    def rounded(self, vector: Any) -> Any:
        """The nearest bf16 numbers, ties to even."""

        def constant(value: int) -> Any:
            return ir.Constant(_BITS, [value] * TILE)

        b = self.builder
        bits = b.bitcast(vector, _BITS)
        odd = b.and_(b.lshr(bits, constant(16)), constant(1))
        bits = b.add(b.add(bits, constant(0x7FFF)), odd)
        return b.bitcast(b.and_(bits, constant(0xFFFF0000)), _VECTOR)

    def loop(self, low: Any, high: Any, start: Any, body: Callable[[Any, Any], Any]) -> Any:
        """`start`, replaced by body(k, value) for each k from low to high - 1."""
        b = self.builder
        entry = b.block
        head, inside, after = (b.append_basic_block(n) for n in ("head", "inside", "after"))
        b.branch(head)
        b.position_at_end(head)
        k, value = b.phi(_LONG), b.phi(start.type)
        k.add_incoming(low, entry)
        value.add_incoming(start, entry)
        b.cbranch(b.icmp_signed("<", k, high), inside, after)
        b.position_at_end(inside)
        value_after = body(k, value)
        k.add_incoming(b.add(k, ir.Constant(_LONG, 1)), b.block)
        value.add_incoming(value_after, b.block)
        b.branch(head)
        b.position_at_end(after)
        return value


_NOTHING = ir.Constant(_INT, 0)


def _add_column(
    typing: Any, value: Any, row: Any, low: Any, high: Any, x: Any, column: Any, out: Any
) -> Any:
    """out[row[k], :] += value[k] * x[column, :] for k in low..high - 1.

    `value` is float32 [n], `row` uint32 [n]; `x` and `out` are float32 [rows, TILE], contiguous.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        values, rows, out_data = code.array(0), code.array(1), code.array(6)
        factor = code.load(code.array(4), arguments[5])

        def body(k: Any, nothing: Any) -> Any:
            at = builder.zext(code.number(rows, k), _LONG)
            product = builder.fmul(code.spread(code.number(values, k)), factor)
            code.store(builder.fadd(code.load(out_data, at), product), out_data, at)
            return nothing

        code.loop(arguments[2], arguments[3], _NOTHING, body)
        return context.get_dummy_value()

    long = types.int64
    return types.void(value, row, long, long, x, long, out), generate


def _any_in_row(typing: Any, x: Any, row: Any) -> Any:
    """Whether x[row, :] holds a number other than 0; `x` is float32 [rows, TILE]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        zero = ir.Constant(_VECTOR, [0.0] * TILE)
        differs = builder.fcmp_unordered("!=", code.load(code.array(0), arguments[1]), zero)
        mask = builder.bitcast(differs, ir.IntType(TILE))
        return builder.icmp_unsigned("!=", mask, ir.Constant(mask.type, 0))

    return types.boolean(x, types.int64), generate


def _columns_in_rows(typing: Any, x: Any, low: Any, high: Any) -> Any:
    """Bit t for each t where x[low:high, t] holds a number other than 0; `x` as above."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        data, zero = code.array(0), ir.Constant(_VECTOR, [0.0] * TILE)

        def body(k: Any, found: Any) -> Any:
            differs = builder.fcmp_unordered("!=", code.load(data, k), zero)
            return builder.or_(found, builder.bitcast(differs, found.type))

        none = ir.Constant(ir.IntType(TILE), 0)
        return builder.zext(code.loop(arguments[1], arguments[2], none, body), _LONG)

    return types.int64(x, types.int64, types.int64), generate


def _silu_ends(
    typing: Any, x: Any, row: Any, one: Any, silu_one: Any, other: Any, silu_other: Any
) -> Any:
    """Rounds x[row, :] to bf16 and takes SiLU where that needs no exp; `x` as above.

    That is where x[row, t] is 0, at least 104 in size, `one` or `other`, of which SiLU is given.
    The result has bit t for each other t: there x[row, t] is only rounded.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        data = code.array(0)
        numbers = code.rounded(code.load(data, arguments[1]))

        def constant(value: int) -> Any:
            return ir.Constant(_BITS, [value] * TILE)

        size = builder.and_(builder.bitcast(numbers, _BITS), constant(0x7FFFFFFF))
        # Less 1, 0 is the largest of all.
        size = builder.sub(size, constant(1))
        left = builder.icmp_unsigned("<", size, constant(_SILU_EXACT_BITS - 1))
        zero = ir.Constant(_VECTOR, [0.0] * TILE)
        kept = builder.or_(left, builder.fcmp_unordered(">", numbers, zero))
        result = builder.select(kept, numbers, zero)
        for number, silu in (arguments[2:4], arguments[4:6]):
            known = builder.and_(left, builder.fcmp_ordered("==", numbers, code.spread(number)))
            result = builder.select(known, code.spread(silu), result)
            left = builder.xor(left, known)
        code.store(result, data, arguments[1])
        return builder.zext(builder.bitcast(left, ir.IntType(TILE)), _LONG)

    float32 = types.float32
    return types.int64(x, types.int64, float32, float32, float32, float32), generate


def _sum_squares(typing: Any, x: Any, out: Any) -> Any:
    """out[0, :] = sum over all rows of x**2; `x` is float32 [rows, TILE]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        data = code.array(0)
        zero = ir.Constant(_VECTOR, [0.0] * TILE)
        sums = [builder.alloca(_VECTOR) for _ in range(SUMS)]
        for total in sums:
            builder.store(zero, total)

        def add(row: Any, total: Any) -> None:
            numbers = code.load(data, row)
            square = builder.fmul(numbers, numbers)
            builder.store(builder.fadd(builder.load(total), square), total)

        def four(k: Any, nothing: Any) -> Any:
            first = builder.mul(k, ir.Constant(_LONG, SUMS))
            for i, total in enumerate(sums):
                add(builder.add(first, ir.Constant(_LONG, i)), total)
            return nothing

        def rest(k: Any, nothing: Any) -> Any:
            add(k, sums[0])
            return nothing

        length = code.length(0)
        fours = builder.udiv(length, ir.Constant(_LONG, SUMS))
        code.loop(ir.Constant(_LONG, 0), fours, _NOTHING, four)
        code.loop(builder.mul(fours, ir.Constant(_LONG, SUMS)), length, _NOTHING, rest)
        a, b, c, d = (builder.load(total) for total in sums)
        total = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
        code.store(total, code.array(1), ir.Constant(_LONG, 0))
        return context.get_dummy_value()

    return types.void(x, out), generate


def _scale_rows(typing: Any, x: Any, scales: Any, gain: Any, out: Any) -> Any:
    """out[i, :] = bf16(x[i, :] * scales[0, :] * gain[i]) for all rows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        data, gains, out_data = code.array(0), code.array(2), code.array(3)
        scale = code.load(code.array(1), ir.Constant(_LONG, 0))

        def body(k: Any, nothing: Any) -> Any:
            row = builder.fmul(code.load(data, k), scale)
            row = builder.fmul(row, code.spread(code.number(gains, k)))
            code.store(code.rounded(row), out_data, k)
            return nothing

        code.loop(ir.Constant(_LONG, 0), code.length(0), _NOTHING, body)
        return context.get_dummy_value()

    return types.void(x, scales, gain, out), generate


# Compiled code calls these without their first argument.
add_column: Any = intrinsic(_add_column)
any_in_row: Any = intrinsic(_any_in_row)
columns_in_rows: Any = intrinsic(_columns_in_rows)
silu_ends: Any = intrinsic(_silu_ends)
sum_squares: Any = intrinsic(_sum_squares)
scale_rows: Any = intrinsic(_scale_rows)
