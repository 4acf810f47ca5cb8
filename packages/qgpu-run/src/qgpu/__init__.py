"""CUDA kernels from Python, executed by a language model: CuPy's `RawKernel` on qgpu.

    import numpy as np, qgpu

    add = qgpu.RawKernel(source, "add")
    add((4,), (16,), (a, b, c))  # integer numpy arrays, written in place

Arrays made by `qgpu.asarray` and `qgpu.zeros` stay in the model's recurrent state between launches.
"""

from qgpu_ptx.diagnostics import CompilerNotFoundError, LaunchError, QgpuPtxError, UnsupportedError
from qgpu_ptx.diagnostics import CudaCompileError as CompileError
from qgpu_ptx.lowering_errors import MachineLimitError
from qgpu_run.errors import (
    CtaDependenceError,
    KernelFaultError,
    ModelError,
    TokenLimitError,
)

from qgpu.device import Device, LaunchStats, current_device
from qgpu.device_array import DeviceArray, asarray, zeros
from qgpu.raw_kernel import RawKernel, RawModule

__all__ = [
    "CompileError",
    "CompilerNotFoundError",
    "CtaDependenceError",
    "Device",
    "DeviceArray",
    "KernelFaultError",
    "LaunchError",
    "LaunchStats",
    "MachineLimitError",
    "ModelError",
    "QgpuPtxError",
    "RawKernel",
    "RawModule",
    "TokenLimitError",
    "UnsupportedError",
    "asarray",
    "current_device",
    "zeros",
]
