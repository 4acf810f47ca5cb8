"""Special registers from the two numbers that a machine thread has: TID and CTAID."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qgpu_isa.machine_config import WARP_THREADS

from qgpu_ptx.divide_constant import divide_unsigned
from qgpu_ptx.ir import WORD, ZERO, Imm, Special, Value
from qgpu_ptx.launch_shape import Dim3

if TYPE_CHECKING:
    from qgpu_ptx.ast_to_ir import KernelLowering

_AXES = {"x": 0, "y": 1, "z": 2}


def special_register(kernel: KernelLowering, name: str) -> Value | None:
    """The value of a PTX special register, None for an unknown or volatile one."""
    base, _, axis = name.partition(".")
    shape = kernel.shape
    if axis in _AXES:
        number = _AXES[axis]
        match base:
            case "%ntid":
                return Imm(shape.block[number])
            case "%nctaid":
                return Imm(shape.grid[number])
            case "%tid":
                return _coordinate(kernel, thread(kernel), shape.block, number)
            case "%ctaid":
                cta: Value = Special.CTAID if shape.ctas > 1 else ZERO
                return _coordinate(kernel, cta, shape.grid, number)
    return _scalar(kernel, name)


def _scalar(kernel: KernelLowering, name: str) -> Value | None:
    b, shape = kernel.builder, kernel.shape
    match name:
        case "WARP_SZ":
            return Imm(WARP_THREADS)
        case "%laneid":
            return lane(kernel)
        case "%warpid":
            return b.shr(thread(kernel), 5) if shape.threads > WARP_THREADS else ZERO
        case "%nwarpid":
            return Imm(-(-shape.threads // WARP_THREADS))
        case "%smid" | "%gridid":
            return ZERO
        case "%nsmid":
            return Imm(1)
        case "%lanemask_eq":
            return b.shl(Imm(1), lane(kernel))
        case "%lanemask_lt":
            return b.sub(b.shl(Imm(1), lane(kernel)), 1)
        case "%lanemask_le":
            return b.sub(b.shl(Imm(2), lane(kernel)), 1)
        case "%lanemask_ge":
            return b.shl(Imm(WORD), lane(kernel))
        case "%lanemask_gt":
            return b.shl(Imm(WORD - 1), lane(kernel))
        case "%dynamic_smem_size":
            return Imm(shape.dynamic_shared_bytes)
        case "%total_smem_size":
            return Imm(kernel.variables.shared_bytes(shape.dynamic_shared_bytes))
    return None


def thread(kernel: KernelLowering) -> Value:
    """The thread's linear number in its CTA."""
    return Special.TID if kernel.shape.threads > 1 else ZERO


def lane(kernel: KernelLowering) -> Value:
    """The thread's number in its warp of 32."""
    number = thread(kernel)
    if kernel.shape.threads <= WARP_THREADS:
        return number
    return kernel.builder.and_(number, WARP_THREADS - 1)


def _coordinate(kernel: KernelLowering, linear: Value, sizes: Dim3, axis: int) -> Value:
    """One coordinate of a linear number in a box of the given sizes."""
    if sizes[axis] == 1:
        return ZERO
    b = kernel.builder
    total = sizes[0] * sizes[1] * sizes[2]
    for size in sizes[:axis]:
        linear, total = divide_unsigned(b, linear, size, total - 1), total // size
    if total == sizes[axis]:
        return linear
    quotient = divide_unsigned(b, linear, sizes[axis], total - 1)
    size = sizes[axis]
    if size & (size - 1) == 0:
        return b.and_(linear, size - 1)
    return b.sub(linear, b.op("mullo", quotient, size))
