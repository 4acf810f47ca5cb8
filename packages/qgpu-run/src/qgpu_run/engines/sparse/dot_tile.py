"""A sparse row times a tile of columns, held in one vector register.

LLVM does not find this vectorisation by itself: it cannot know that the sums do not overlap the
matrix, so it keeps them in memory.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

TILE = 16
"""Columns of a tile: the float32 numbers of a 512-bit register."""

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, TILE)
_FLOAT_BYTES = 4


@intrinsic  # type: ignore[misc]
def dot_tile(
    typing: Any, value: Any, column: Any, low: Any, high: Any, x: Any, out: Any, row: Any
) -> Any:
    """out[row, :] = sum over k in low..high - 1 of value[k] * x[column[k], :], in that order.

    `value` is float32 [n], `column` int32 [n]; `x` and `out` are float32 [rows, TILE], contiguous.
    Products and sums are rounded one by one, as those of the single column are.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(index: int) -> Any:
            array = context.make_array(signature.args[index])(context, builder, arguments[index])
            return array.data

        def tile(pointer: Any, number: Any) -> Any:
            at = builder.mul(number, ir.Constant(number.type, TILE))
            return builder.bitcast(builder.gep(pointer, [at]), _VECTOR.as_pointer())

        values, columns, xs, outs = data(0), data(1), data(4), data(5)
        first, last = arguments[2], arguments[3]
        entry = builder.block
        head, body, after = (builder.append_basic_block(n) for n in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        k = builder.phi(first.type)
        total = builder.phi(_VECTOR)
        k.add_incoming(first, entry)
        total.add_incoming(ir.Constant(_VECTOR, [0.0] * TILE), entry)
        builder.cbranch(builder.icmp_signed("<", k, last), body, after)
        builder.position_at_end(body)
        at = builder.sext(builder.load(builder.gep(columns, [k])), first.type)
        vector = builder.load(tile(xs, at), align=_FLOAT_BYTES)
        factor = builder.insert_element(
            ir.Constant(_VECTOR, ir.Undefined),
            builder.load(builder.gep(values, [k])),
            ir.Constant(ir.IntType(32), 0),
        )
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), TILE), [0] * TILE)
        factors = builder.shuffle_vector(factor, ir.Constant(_VECTOR, ir.Undefined), zeros)
        k.add_incoming(builder.add(k, ir.Constant(k.type, 1)), body)
        total.add_incoming(builder.fadd(total, builder.fmul(factors, vector)), body)
        builder.branch(head)
        builder.position_at_end(after)
        builder.store(total, tile(outs, arguments[6]), align=_FLOAT_BYTES)
        return context.get_dummy_value()

    signature = types.void(value, column, types.int64, types.int64, x, out, types.int64)
    return signature, generate
