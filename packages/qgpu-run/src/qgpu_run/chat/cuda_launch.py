"""Advanced mode: a kernel that the model wrote, launched as it said."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources
from typing import Any

import lark
import numpy as np
import qgpu
from qgpu_isa.errors import QgpuError

from qgpu_run.chat.clean_source import clean_source

LARGEST_ARRAY = 4096


class LaunchTextError(QgpuError):
    """A launch that is not written as it should be."""


@dataclass(frozen=True)
class Output:
    """An array that is read back.

    Attributes:
        name: by which its contents are told.
        words: numbers that it holds at first.
    """

    name: str
    words: list[int]


@dataclass(frozen=True)
class LaunchText:
    """A launch as the model wrote it.

    Attributes:
        kernel: name of the kernel.
        grid, block: sizes.
        shared: bytes of dynamic shared memory.
        arguments: numbers, arrays that are read, arrays that are read back.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    arguments: tuple[int | list[int] | Output, ...]


class _Build(lark.Transformer[lark.Token, LaunchText]):
    def one(self, items: list[lark.Token]) -> tuple[int, ...]:
        return (int(items[0]),)

    def several(self, items: list[lark.Token]) -> tuple[int, ...]:
        return tuple(map(int, items))

    def number(self, items: list[lark.Token]) -> int:
        return int(items[0])

    def array(self, items: list[lark.Token | None]) -> list[int]:
        return [int(item) for item in items if item is not None]

    def output(self, items: list[lark.Token]) -> Output:
        size = int(items[1])
        if not 0 < size <= LARGEST_ARRAY:
            raise LaunchTextError(f"{items[0]}[{size}]: an array has 1 to {LARGEST_ARRAY} words")
        return Output(str(items[0]), [0] * size)

    def changed(self, items: list[lark.Token | None]) -> Output:
        return Output(str(items[0]), [int(item) for item in items[1:] if item is not None])

    def start(self, items: list[object]) -> LaunchText:
        name, grid, block, *rest = items
        shared = int(str(rest.pop(0))) if isinstance(rest[0], lark.Token) else 0
        arguments = tuple(item for item in rest if item is not None)
        return LaunchText(str(name), grid, block, shared, arguments)  # type: ignore[arg-type]


@functools.cache
def _parser() -> lark.Lark:
    grammar = resources.files(__package__).joinpath("launch.lark").read_text(encoding="utf-8")
    return lark.Lark(grammar, parser="lalr")


def parse_launch(text: str) -> LaunchText:
    """Reads `name<<<grid, block>>>(arguments)`.

    Arguments are numbers, arrays `[1, 2, 3]` that the kernel reads, `out[4]`, an array of zeros
    that is read back, and `data = [1, 2, 3]`, one that is both.

    Raises:
        LaunchTextError: it is written otherwise.
    """
    try:
        tree = _parser().parse(text)
        return _Build().transform(tree)
    except lark.exceptions.VisitError as error:
        if isinstance(error.orig_exc, LaunchTextError):
            raise error.orig_exc from None
        raise
    except lark.exceptions.UnexpectedInput as error:
        column = error.column if isinstance(error.column, int) and error.column > 0 else len(text)
        raise LaunchTextError(
            f"the launch is wrong at column {column}: write it as "
            "name<<<grid, block>>>([1, 2, 3], 7, out[3])"
        ) from None


@dataclass(frozen=True)
class CudaResult:
    """What a launch gave.

    Attributes:
        text: for the model to read: each array that was read back.
        arrays: their words, by name.
        stats: what the launch took.
    """

    text: str
    arrays: dict[str, list[int]]
    stats: qgpu.LaunchStats


def _element_type(kernel: qgpu.RawKernel, number: int) -> np.dtype[Any]:
    """What an array argument holds: what the parameter points to, as far as that is known."""
    parameters = kernel.parameters or ()
    known = parameters[number].type if number < len(parameters) else None
    if not known or known[0] not in "su":
        return np.dtype(np.int32)
    return np.dtype(f"{'i' if known[0] == 's' else 'u'}{int(known[1:]) // 8}")


def _array(words: list[int], type_: np.dtype[Any]) -> np.ndarray[tuple[int], np.dtype[Any]]:
    bits = 8 * type_.itemsize
    for word in words:
        if not -(1 << (bits - 1)) <= word < 1 << bits:
            raise LaunchTextError(f"{word} does not fit {bits} bits")
    mask = (1 << bits) - 1
    return np.array([word & mask for word in words], dtype=f"u{type_.itemsize}").view(type_)


def run_cuda(device: qgpu.Device, source: str, launch: str) -> CudaResult:
    """Compiles a kernel and launches it.

    Raises:
        LaunchTextError: the launch is not written as it should be.
        QgpuPtxError: the kernel does not compile, or cannot run here.
        QgpuError: it faults, or does not end.
    """
    parsed = parse_launch(launch)
    kernel = qgpu.RawKernel(clean_source(source), parsed.kernel)
    arguments: list[object] = []
    outputs: list[tuple[str, np.ndarray[tuple[int], np.dtype[Any]]]] = []
    for number, argument in enumerate(parsed.arguments):
        if isinstance(argument, int):
            arguments.append(argument)
            continue
        words = argument.words if isinstance(argument, Output) else argument
        array = _array(words, _element_type(kernel, number))
        arguments.append(array)
        if isinstance(argument, Output):
            outputs.append((argument.name, array))
    stats = kernel(
        parsed.grid, parsed.block, tuple(arguments), shared_mem=parsed.shared, device=device
    )
    arrays = {name: array.tolist() for name, array in outputs}
    text = "\n".join(f"{name} = {words}" for name, words in arrays.items())
    return CudaResult(text or "done, nothing was read back", arrays, stats)
