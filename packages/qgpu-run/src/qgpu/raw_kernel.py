"""CUDA C or PTX source, compiled once, and its kernels, which are called like functions."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from qgpu_ptx.compilers.compiler import PtxSource
from qgpu_ptx.cuda_to_ptx import cuda_to_ptx, find_compiler
from qgpu_ptx.kernel_parameters import Parameter, kernel_parameters
from qgpu_ptx.ptx_ast import Function, Module
from qgpu_ptx.ptx_interpreter import find_entry
from qgpu_ptx.source_to_ast import parse_ptx
from qgpu_ptx.text_files import read_text

from qgpu.device import Device, LaunchStats, current_device

FILE = "kernel.cu"
"""What source without a file is called in messages."""

_PTX = re.compile(r"^\s*\.version\s", re.MULTILINE)


def _compile(code: str, options: tuple[str, ...]) -> PtxSource:
    compiler = find_compiler()
    if compiler.name == "nvrtc":
        # It takes the text as it is; the others read files.
        return compiler.compile(Path(FILE), code, options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        path.write_text(code, encoding="utf-8")
        return compiler.compile(path, code, options)


class RawModule:
    """Source of one or more kernels, as CuPy's.

    `.global` and `.constant` variables start with their initial values in every launch.
    """

    def __init__(
        self,
        code: str | None = None,
        *,
        path: str | Path | None = None,
        options: Sequence[str] = (),
    ) -> None:
        if (code is None) == (path is None):
            raise ValueError("give either code or path")
        self._path = None if path is None else Path(path)
        self.code = code if code is not None else read_text(Path(str(path)))
        self.options = tuple(options)

    @cached_property
    def ast(self) -> Module:
        """The module; compiled when it is first asked for.

        Raises:
            CompileError, CompilerNotFoundError: from the CUDA compiler.
            UnsupportedError: what is not carried out; other QgpuPtxError: PTX that is wrong.
        """
        name = str(self._path or "<kernel>")
        if _PTX.search(self.code):
            return parse_ptx(self.code, name)
        if self._path is not None:
            found = cuda_to_ptx(self._path, options=self.options)
            return parse_ptx(found.text, name, found.compiler)
        found = _compile(self.code, self.options)
        return parse_ptx(found.text, FILE, found.compiler)

    def get_function(self, name: str) -> RawKernel:
        """The kernel of that name."""
        return RawKernel._of(self, name)


class RawKernel:
    """One kernel.

    Args:
        code: CUDA C or PTX.
        name: of the kernel; declare it `extern "C"`.
        options: for the CUDA compiler, as in `("-DN=4",)`.
    """

    def __init__(self, code: str, name: str, options: Sequence[str] = ()) -> None:
        self.module, self.name = RawModule(code, options=options), name

    @classmethod
    def _of(cls, module: RawModule, name: str) -> RawKernel:
        kernel = cls.__new__(cls)
        kernel.module, kernel.name = module, name
        return kernel

    @cached_property
    def entry(self) -> Function:
        """The kernel in the module; raises as `RawModule.ast` does, and LaunchError."""
        return find_entry(self.module.ast, self.name)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...] | None:
        """Names and types of the parameters, as far as the source says them plainly."""
        cuda = None if _PTX.search(self.module.code) else self.module.code
        return kernel_parameters(self.entry, cuda)

    def __call__(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] = (),
        *,
        shared_mem: int = 0,
        device: Device | None = None,
    ) -> LaunchStats:
        """Launches the kernel and waits for its end.

        Args:
            grid, block: CTAs, and threads of each: one to three numbers.
            args: device arrays, integer numpy arrays (written in place), integers.
            shared_mem: bytes of dynamic shared memory.
            device: where to run; default: the current device.

        Raises:
            CompileError, CompilerNotFoundError: from the CUDA compiler.
            LaunchError: sizes or arguments do not fit the kernel.
            UnsupportedError: the kernel needs what the machine or this compiler lacks.
            KernelFaultError: it accessed memory that is not there, or trapped.
            TokenLimitError: it wrote more tokens than the device allows.
            CtaDependenceError: on a device with several SMs, its CTAs depend on each other.
        """
        return (device or current_device()).launch(self, grid, block, args, shared_mem=shared_mem)
