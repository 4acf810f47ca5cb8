"""Copies arguments into a callee's frame and return values back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES
from qgpu_ptx.ptx_interpreter.symbols import MemorySymbol, RegisterSymbol

if TYPE_CHECKING:
    from qgpu_ptx.ptx_interpreter.machine import Frame, Lane
    from qgpu_ptx.ptx_interpreter.operands import OperandDecoder


@dataclass(frozen=True)
class Copy:
    """One argument: where it lies in the callee, and what the caller names.

    `variable` is the caller's `.param` variable, None for a register or a constant.
    """

    formal: MemorySymbol | RegisterSymbol
    variable: MemorySymbol | None
    operand: ast.Operand


def copy_in(d: OperandDecoder, lane: Lane, frame: Frame, copies: list[Copy]) -> None:
    """Fills the parameters of `frame`, which the lane has not entered yet."""
    for copy in copies:
        formal = copy.formal
        if isinstance(formal, RegisterSymbol):
            frame.registers[formal.index] = d.reader(copy.operand, formal.type)(lane) & (
                formal.type.mask
            )
            continue
        end = formal.address + formal.size
        if copy.variable is not None:
            start = copy.variable.address
            data = bytes(lane.frame.param[start : start + formal.size])
        else:
            type_ = SCALAR_TYPES[f"b{formal.size * 8}"]
            data = d.reader(copy.operand, type_)(lane).to_bytes(formal.size, "little")
        frame.param[formal.address : end] = data


def copy_back(d: OperandDecoder, lane: Lane, left: Frame, copies: list[Copy]) -> None:
    """Copies return values from the frame a lane has left into its caller's."""
    for copy in copies:
        formal = copy.formal
        if isinstance(formal, RegisterSymbol):
            d.writer(copy.operand, formal.type)(lane, left.registers[formal.index] or 0)
            continue
        data = bytes(left.param[formal.address : formal.address + formal.size])
        if copy.variable is not None:
            start = copy.variable.address
            lane.frame.param[start : start + formal.size] = data
        else:
            type_ = SCALAR_TYPES[f"b{formal.size * 8}"]
            d.writer(copy.operand, type_)(lane, int.from_bytes(data, "little"))
