"""NVRTC through ctypes, from NVIDIA's wheels or from the system; needs no GPU and no driver."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from qgpu_ptx.compilers.compiler import ARCHITECTURE, PtxSource, compile_error
from qgpu_ptx.diagnostics import CudaCompileError


def _wheel_folders() -> list[Path]:
    """`nvidia/*/lib` of every installed NVIDIA wheel (cu13, cuda_nvrtc, ...)."""
    spec = importlib.util.find_spec("nvidia")
    roots = spec.submodule_search_locations if spec and spec.submodule_search_locations else []
    return [folder for root in roots for folder in sorted(Path(root).glob("*/lib"))]


@cache
def _library() -> tuple[ctypes.CDLL, Path] | None:
    """The loaded library and the folder of its wheel.

    The builtins library goes first and by full path: NVRTC looks for it by name alone, which
    fails when no search path holds it (compile error 7).
    """
    for folder in _wheel_folders():
        libraries = [p for p in sorted(folder.glob("libnvrtc.so*")) if "alt" not in p.name]
        if not libraries:
            continue
        try:
            for builtins in sorted(folder.glob("libnvrtc-builtins.so*")):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(libraries[-1])), folder
        except OSError:
            continue
    return None


def _check(library: ctypes.CDLL, code: int, what: str) -> None:
    if code:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        reason = library.nvrtcGetErrorString(code).decode()
        raise CudaCompileError(f"NVRTC cannot {what}: {reason}", log="")


class NvrtcCompiler:
    """The run-time compiler of CUDA as a library."""

    name = "nvrtc"
    how_to_install = "pip install 'qgpu-ptx[nvrtc]' (Linux)"

    def version(self) -> str | None:
        """NVRTC's version, None where the library is not installed."""
        found = _library()
        if found is None:
            return None
        major, minor = ctypes.c_int(), ctypes.c_int()
        _check(found[0], found[0].nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "start")
        return f"{major.value}.{minor.value}"

    def compile(self, path: Path, text: str, options: Sequence[str]) -> PtxSource:
        """Raises CudaCompileError."""
        found = _library()
        if found is None:
            raise CudaCompileError("NVRTC is not installed", log="", hint=self.how_to_install)
        library, folder = found
        flags = [
            f"--gpu-architecture=compute_{ARCHITECTURE}",
            "-lineinfo",
            f"--include-path={path.parent.resolve()}",
            f"--include-path={folder.parent / 'include'}",
            *options,
        ]
        program = ctypes.c_void_p()
        created = library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), str(path).encode(), 0, None, None
        )
        _check(library, created, f"read {path}")
        try:
            encoded = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
            if library.nvrtcCompileProgram(program, len(flags), encoded):
                log = _text(library, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
                raise compile_error(self.name, path, text, log)
            ptx = _text(library, program, "nvrtcGetPTXSize", "nvrtcGetPTX")
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))
        return PtxSource(ptx, self.name, self.version() or "unknown", path)


def _text(library: ctypes.CDLL, program: ctypes.c_void_p, size_name: str, get_name: str) -> str:
    size = ctypes.c_size_t()
    _check(library, library[size_name](program, ctypes.byref(size)), "tell the size of its output")
    buffer = ctypes.create_string_buffer(size.value)
    _check(library, library[get_name](program, buffer), "give its output")
    return buffer.value.decode()
