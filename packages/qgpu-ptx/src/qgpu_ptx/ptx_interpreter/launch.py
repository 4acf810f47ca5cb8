"""Runs a kernel of a PTX module on the reference interpreter."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import LaunchError
from qgpu_ptx.ptx_interpreter.instruction_table import Observer
from qgpu_ptx.ptx_interpreter.machine import (
    WARP_SIZE,
    Code,
    Cta,
    Dim3,
    Frame,
    Lane,
    Launch,
    Warp,
)
from qgpu_ptx.ptx_interpreter.memory import WINDOW_BYTES, Allocation, DeviceMemory
from qgpu_ptx.ptx_interpreter.program import Program
from qgpu_ptx.ptx_interpreter.symbols import MemorySymbol

DEFAULT_MAX_STEPS = 2_000_000
# CUDA's limit on threads of a CTA, for every architecture since sm_20.
MAX_CTA_THREADS = 1024


@dataclass(frozen=True)
class LaunchOutcome:
    """What a launch leaves behind.

    `arrays` holds, for each argument in order, a copy of the array with the kernel's stores, or
    None for a scalar; `parameters` are the kernel's parameter names; `steps` counts the warp
    instructions executed.
    """

    parameters: tuple[str, ...]
    arrays: tuple[Any, ...]
    steps: int

    def __getitem__(self, key: int | str) -> Any:
        """An array by argument number or by parameter name."""
        return self.arrays[self.parameters.index(key) if isinstance(key, str) else key]


def find_entry(module: ast.Module, name: str | None) -> ast.Function:
    """The kernel called `name`, or the only one.

    A C++ kernel is found by its plain name too, if it is the only one with it.

    Raises:
        LaunchError: there is none, or no name was given and there are several.
    """
    names = [entry.name for entry in module.entries]
    for entry in module.entries:
        if entry.name == name or (name is None and len(names) == 1):
            return entry
    plain = [entry for entry in module.entries if _plain_name(entry.name) == name]
    if name is not None and len(plain) == 1:
        return plain[0]
    found = "no kernel name was given" if name is None else f"there is no kernel '{name}'"
    raise LaunchError(
        found,
        found=name,
        expected=[_plain_name(name) or name for name in names]
        or ["a __global__ function that is no template"],
        hint="give one of these names" if names else "declare the kernel __global__",
    )


def _plain_name(mangled: str) -> str | None:
    """`add` of `_Z3addPKi`: a function's name outside of namespaces (Itanium C++ ABI, 5.1.2)."""
    found = re.match(r"_Z(\d+)", mangled)
    if found is None:
        return None
    start = found.end()
    return mangled[start : start + int(found[1])]


def run_ptx(
    module: ast.Module,
    entry: str | None,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    *,
    dynamic_shared_bytes: int = 0,
    max_steps: int = DEFAULT_MAX_STEPS,
    refuse_unwritten_registers: bool = False,
    observe: Observer | None = None,
) -> LaunchOutcome:
    """Runs one kernel over a grid and returns its arrays.

    `args` has one item per parameter: an int for a scalar, bytes for a struct passed by value, any
    C-contiguous buffer (numpy array, array.array) for a pointer. Buffers are copied to device
    memory; the caller's are never changed. The same buffer given twice is one allocation. CTAs
    run one after another. `observe` is called before each warp instruction. Raises QgpuPtxError:
    LaunchError for arguments that do not fit, UnsupportedInstructionError and others while
    decoding, ExecutionError while running.
    """
    function = find_entry(module, entry)
    launch = Launch(
        _dim3(grid, "grid"),
        _dim3(block, "block"),
        max_steps,
        dynamic_shared_bytes,
        refuse_unwritten_registers,
        observe=observe,
    )
    _check_block(function, launch.block)
    memory = DeviceMemory()
    program = Program(module, memory)
    code = program.link(function.name, dynamic_shared_bytes)
    if program.shared_bytes > WINDOW_BYTES:
        raise LaunchError(f"{program.shared_bytes} bytes of shared memory are too many")
    _, parameters = program.signature(function.name)
    block_of_parameters, allocations = _pass_arguments(function, parameters, code, args, memory)
    for z, y, x in product(*map(range, reversed(launch.grid))):
        shared = bytearray(program.shared_bytes)
        cta = Cta(launch, function.name, (x, y, z), memory, shared)
        _start(cta, code, block_of_parameters)
        cta.run()
    return LaunchOutcome(
        tuple(parameter.name for parameter in function.parameters),
        tuple(
            None if allocation is None else _like(argument, allocation.data)
            for argument, allocation in zip(args, allocations, strict=True)
        ),
        launch.steps,
    )


def _dim3(size: int | Sequence[int], what: str) -> Dim3:
    sizes = [size] if isinstance(size, int) else list(size)
    if not 1 <= len(sizes) <= 3 or any(n < 1 for n in sizes):
        raise LaunchError(f"{what} {sizes} is not 1 to 3 positive numbers")
    x, y, z = (*sizes, 1, 1)[:3]
    return (x, y, z)


def _check_block(function: ast.Function, block: Dim3) -> None:
    threads = block[0] * block[1] * block[2]
    if threads > MAX_CTA_THREADS:
        raise LaunchError(f"a CTA of {threads} threads exceeds {MAX_CTA_THREADS}")
    for directive in function.directives:
        wanted = (*directive.values, 1, 1)[:3]
        if directive.name == "reqntid" and wanted != block:
            raise LaunchError(f"the kernel requires a block of {wanted}", span=directive.span)
        if directive.name == "maxntid" and threads > wanted[0] * wanted[1] * wanted[2]:
            raise LaunchError(f"the kernel allows a block of {wanted}", span=directive.span)


def _start(cta: Cta, code: Code, parameters: bytes) -> None:
    sizes = cta.launch.block
    for linear, (z, y, x) in enumerate(product(*map(range, reversed(sizes)))):
        if linear % WARP_SIZE == 0:
            cta.warps.append(Warp(cta, linear // WARP_SIZE))
        frame = Frame(code, [None] * code.registers, bytearray(parameters), 0)
        warp = cta.warps[-1]
        warp.lanes.append(Lane(cta, warp, linear, (x, y, z), frame))


def _pass_arguments(
    function: ast.Function,
    symbols: Sequence[object],
    code: Code,
    args: Sequence[Any],
    memory: DeviceMemory,
) -> tuple[bytes, list[Allocation | None]]:
    if len(args) != len(symbols):
        raise LaunchError(
            f"kernel {function.name} takes {len(symbols)} arguments, {len(args)} given",
            span=function.span,
        )
    block = bytearray(code.param_bytes)
    allocations: list[Allocation | None] = []
    shared: dict[int, Allocation] = {}
    for symbol, parameter, arg in zip(symbols, function.parameters, args, strict=True):
        assert isinstance(symbol, MemorySymbol)
        where = slice(symbol.address, symbol.address + symbol.size)
        allocation = None
        if isinstance(arg, bytes):
            data = arg
        elif _is_integer(arg):
            limit = 1 << 8 * symbol.size
            if not -limit // 2 <= int(arg) < limit:
                raise LaunchError(
                    f"{arg} does not fit the {symbol.size} bytes of {parameter.name}",
                    span=parameter.span,
                )
            data = (int(arg) % limit).to_bytes(symbol.size, "little")
        else:
            if symbol.size not in (4, 8):
                raise LaunchError(
                    f"{parameter.name} has {symbol.size} bytes and cannot hold a pointer",
                    span=parameter.span,
                )
            allocation = shared.get(id(arg)) or memory.allocate(
                parameter.name, _buffer_bytes(arg, parameter)
            )
            shared[id(arg)] = allocation
            data = allocation.start.to_bytes(symbol.size, "little")
        if len(data) != symbol.size:
            raise LaunchError(
                f"{parameter.name} has {symbol.size} bytes, {len(data)} given", span=parameter.span
            )
        block[where] = data
        allocations.append(allocation)
    return bytes(block), allocations


def _is_integer(arg: object) -> bool:
    # numpy scalars support both the buffer protocol and __index__; arrays of one element refuse
    # __index__ unless they have no dimension.
    return isinstance(arg, int) or (hasattr(arg, "__index__") and not hasattr(arg, "__len__"))


def _buffer_bytes(arg: object, parameter: ast.Variable) -> bytearray:
    try:
        view = memoryview(arg)  # type: ignore[arg-type]
    except TypeError:
        raise LaunchError(
            f"{parameter.name}: {type(arg).__name__} is not an int, bytes or a buffer",
            span=parameter.span,
        ) from None
    if not view.c_contiguous:
        raise LaunchError(f"{parameter.name}: the array is not contiguous", span=parameter.span)
    return bytearray(view.tobytes())


def _like(argument: Any, data: bytearray) -> Any:
    """A copy of a buffer object with other contents."""
    result = copy.deepcopy(argument)
    if data:
        memoryview(result).cast("B")[:] = data
    return result
