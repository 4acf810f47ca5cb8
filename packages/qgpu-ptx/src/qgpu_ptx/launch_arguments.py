"""Arguments and sizes of a launch from the command line: `NAME[:TYPE]=VALUE`, `4,4`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qgpu_ptx.diagnostics import LaunchArgumentError
from qgpu_ptx.kernel_parameters import Parameter
from qgpu_ptx.launch_shape import Dim3
from qgpu_ptx.launch_spec import (
    ARGUMENT_TYPES,
    MAX_ELEMENTS,
    Argument,
    ArrayArgument,
    LaunchSpec,
    ScalarArgument,
)
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

_ARGUMENT = re.compile(r"(?P<name>\w+)(?::(?P<type>\w+\*?))?=(?P<value>.*)", re.DOTALL)
_ZEROS = re.compile(r"zeros?\((\d+)\)")

MAX_SIZE = (1 << 31) - 1
"""The most CTAs or threads in one direction that CUDA launches."""


@dataclass(frozen=True)
class GivenArgument:
    """One `--arg`.

    Attributes:
        name: as given.
        type: element type without `*`, None if not given.
        values: the elements; one for a scalar.
        is_array: whether a pointer is passed.
    """

    name: str
    type: str | None
    values: tuple[int, ...]
    is_array: bool


def parse_argument(text: str) -> GivenArgument:
    """Reads `n=16`, `a=[1,2,3]`, `a=1,2,3`, `c:u8*=zeros(16)` or `a=data.npy`.

    Raises:
        LaunchArgumentError: saying what is wrong.
    """
    match = _ARGUMENT.fullmatch(text.strip())
    if match is None:
        raise LaunchArgumentError(f"--arg {text}: write NAME=VALUE or NAME:TYPE=VALUE")
    name, type_, value = match["name"], match["type"], match["value"].strip()
    pointer = type_ is not None and type_.endswith("*")
    base = None if type_ is None else type_.removesuffix("*")
    if base is not None and base not in ARGUMENT_TYPES:
        raise LaunchArgumentError(
            f"--arg {name}: there is no type '{type_}'",
            expected=[*ARGUMENT_TYPES, "and these with * for a pointer"],
        )
    if value.endswith(".npy"):
        found, values = _read_npy(name, Path(value))
        given = GivenArgument(name, base or found, values, True)
    elif zeros := _ZEROS.fullmatch(value):
        length = int(zeros[1])
        if length > MAX_ELEMENTS:
            raise LaunchArgumentError(f"--arg {name}: {length} elements are too many")
        given = GivenArgument(name, base, (0,) * length, True)
    else:
        is_list = value.startswith("[") or "," in value or pointer
        inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
        if not inner.strip():
            raise LaunchArgumentError(f"--arg {name} has no value; an empty array is zeros(0)")
        values = tuple(_integer(name, item.strip()) for item in inner.split(","))
        given = GivenArgument(name, base, values, is_list)
    if type_ is not None and pointer != given.is_array:
        raise LaunchArgumentError(f"--arg {name}: '{value}' does not fit type {type_}")
    return given


def parse_arguments(texts: Sequence[str]) -> list[GivenArgument]:
    """Reads all `--arg`. Raises LaunchArgumentError."""
    given = [parse_argument(text) for text in texts]
    names = [argument.name for argument in given]
    for name in names:
        if names.count(name) > 1:
            raise LaunchArgumentError(f"--arg {name} is given twice")
    return given


def _integer(name: str, text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise LaunchArgumentError(f"--arg {name}: '{text}' is not an integer") from None


def _read_npy(name: str, path: Path) -> tuple[str, tuple[int, ...]]:
    try:
        import numpy as np
    except ImportError:
        raise LaunchArgumentError(
            f"--arg {name}: reading {path} needs numpy", hint="pip install numpy"
        ) from None
    try:
        data = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise LaunchArgumentError(f"--arg {name}: cannot read {path}: {error}") from None
    if data.dtype.kind not in "iu":
        raise LaunchArgumentError(f"--arg {name}: {path} holds {data.dtype}, not integers")
    type_ = f"{'s' if data.dtype.kind == 'i' else 'u'}{8 * data.dtype.itemsize}"
    return type_, tuple(int(v) for v in data.ravel())


def parse_sizes(text: str, option: str) -> Dim3:
    """Reads `16`, `4,4` or `4x4x2`.

    Raises:
        LaunchArgumentError: they are not one to three positive integers.
    """
    parts = re.split(r"[x,]", text.strip("()[] "))
    try:
        sizes = [int(part) for part in parts]
    except ValueError:
        sizes = []
    if not 1 <= len(sizes) <= 3 or not all(1 <= size <= MAX_SIZE for size in sizes):
        raise LaunchArgumentError(
            f"{option} {text}: write one to three positive numbers, as in 16 or 4,4"
        )
    x, y, z = [*sizes, 1, 1][:3]
    return (x, y, z)


def apply_arguments(
    spec: LaunchSpec, given: Sequence[GivenArgument], grid: Dim3 | None, block: Dim3 | None
) -> LaunchSpec:
    """The spec with arguments and sizes replaced; then its expected results no longer count.

    Raises:
        LaunchArgumentError: an argument does not exist or does not fit its type.
    """
    if not given and grid is None and block is None:
        return spec
    known = [argument.name for argument in spec.args]
    replaced = {argument.name: argument for argument in given}
    for name in replaced:
        if name not in known:
            raise LaunchArgumentError(
                f"--arg {name}: the launch spec has no such argument", expected=known
            )
    args = tuple(
        _replaced(argument, replaced[argument.name]) if argument.name in replaced else argument
        for argument in spec.args
    )
    return replace(spec, args=args, grid=grid or spec.grid, block=block or spec.block, expected={})


def _replaced(old: Argument, new: GivenArgument) -> Argument:
    is_array = isinstance(old, ArrayArgument)
    if is_array != new.is_array:
        wanted = "an array" if is_array else "one number"
        raise LaunchArgumentError(f"--arg {old.name}: the launch spec has {wanted} of that name")
    type_ = SCALAR_TYPES[old.type]
    if new.type is not None and SCALAR_TYPES[new.type].bits != type_.bits:
        raise LaunchArgumentError(f"--arg {old.name} is {old.type}, not {new.type}")
    _check_range(old.name, old.type, new.values)
    if isinstance(old, ArrayArgument):
        return replace(old, values=new.values)
    return replace(old, value=new.values[0])


def make_arguments(
    given: Sequence[GivenArgument], parameters: Sequence[Parameter] | None = None
) -> tuple[Argument, ...]:
    """Arguments for a launch without a spec, every array an output.

    Args:
        given: in the order of the command line.
        parameters: the kernel's, in its order; None if their names are not known: then the order
            given is the kernel's.

    Raises:
        LaunchArgumentError: a parameter is missing, does not exist or has another type.
    """
    if parameters is None:
        return tuple(_made(argument, argument.type or "s32") for argument in given)
    by_name = {argument.name: argument for argument in given}
    known = [parameter.name for parameter in parameters]
    for name in by_name:
        if name not in known:
            raise LaunchArgumentError(
                f"--arg {name}: the kernel has no such parameter", expected=known or ["no --arg"]
            )
    missing = [name for name in known if name not in by_name]
    if missing:
        raise LaunchArgumentError(
            f"no value for {', '.join(missing)}: the kernel takes {', '.join(known)}",
            hint="give --arg NAME=VALUE for each, or a launch spec",
        )
    return tuple(_made_for(parameter, by_name[parameter.name]) for parameter in parameters)


def _made_for(parameter: Parameter, given: GivenArgument) -> Argument:
    if parameter.is_pointer is not None and parameter.is_pointer != given.is_array:
        wanted = "an array" if parameter.is_pointer else "one number"
        raise LaunchArgumentError(f"--arg {given.name}: the kernel takes {wanted}")
    type_ = given.type or parameter.type or "s32"
    if parameter.type and SCALAR_TYPES[parameter.type].bits != SCALAR_TYPES[type_].bits:
        raise LaunchArgumentError(f"--arg {given.name} is {parameter.type}, not {type_}")
    return _made(given, type_)


def _made(given: GivenArgument, type_: str) -> Argument:
    _check_range(given.name, type_, given.values)
    if given.is_array:
        return ArrayArgument(given.name, type_, given.values, output=True)
    return ScalarArgument(given.name, type_, given.values[0])


def _check_range(name: str, type_: str, values: Sequence[int]) -> None:
    low, high = SCALAR_TYPES[type_].range
    for value in values:
        if not low <= value <= high:
            raise LaunchArgumentError(f"--arg {name}: {value} does not fit {type_}")
