"""Arguments of a launch from the command line: `NAME[:TYPE]=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qgpu_run.errors import RequestError
from qgpu_run.launch_request import TYPE_BYTES

if TYPE_CHECKING:
    from qgpu_ptx.launch_spec import Argument, LaunchSpec

    from qgpu_run.kernel_parameters import Parameter

_ARGUMENT = re.compile(r"(?P<name>\w+)(?::(?P<type>\w+\*?))?=(?P<value>.*)", re.DOTALL)
_ZEROS = re.compile(r"zeros?\((\d+)\)")

NUMPY_TYPES = {
    "int8": "s8", "uint8": "u8", "int16": "s16", "uint16": "u16",
    "int32": "s32", "uint32": "u32", "int64": "s64", "uint64": "u64",
}  # fmt: skip

MAX_ELEMENTS = 1 << 24
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
        RequestError: saying what is wrong.
    """
    match = _ARGUMENT.fullmatch(text.strip())
    if match is None:
        raise RequestError(f"--arg {text}: write NAME=VALUE or NAME:TYPE=VALUE")
    name, type_, value = match["name"], match["type"], match["value"].strip()
    pointer = type_ is not None and type_.endswith("*")
    base = None if type_ is None else type_.removesuffix("*")
    if base is not None and base not in TYPE_BYTES:
        raise RequestError(f"--arg {name}: no type '{type_}'; there are {', '.join(TYPE_BYTES)}")
    if value.endswith(".npy"):
        found, values = _read_npy(name, Path(value))
        given = GivenArgument(name, base or found, values, True)
    elif zeros := _ZEROS.fullmatch(value):
        length = int(zeros[1])
        if length > MAX_ELEMENTS:
            raise RequestError(f"--arg {name}: {length} elements are too many")
        given = GivenArgument(name, base, (0,) * length, True)
    else:
        is_list = value.startswith("[") or "," in value or pointer
        inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
        if not inner.strip():
            raise RequestError(f"--arg {name} has no value; an empty array is zeros(0)")
        values = tuple(_integer(name, item.strip()) for item in inner.split(","))
        given = GivenArgument(name, base, values, is_list)
    if type_ is not None and pointer != given.is_array:
        raise RequestError(f"--arg {name}: '{value}' does not fit type {type_}")
    return given


def _integer(name: str, text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise RequestError(f"--arg {name}: '{text}' is not an integer") from None


def _read_npy(name: str, path: Path) -> tuple[str, tuple[int, ...]]:
    import numpy as np

    try:
        data = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise RequestError(f"--arg {name}: cannot read {path}: {error}") from None
    type_ = NUMPY_TYPES.get(data.dtype.name)
    if type_ is None:
        raise RequestError(f"--arg {name}: {path} holds {data.dtype}, not integers")
    return type_, tuple(int(v) for v in data.ravel())


def parse_sizes(text: str, option: str) -> tuple[int, int, int]:
    """Reads `16`, `4,4` or `4x4x2`.

    Raises:
        RequestError: they are not one to three positive integers.
    """
    parts = re.split(r"[x,]", text.strip("()[] "))
    try:
        sizes = [int(part) for part in parts]
    except ValueError:
        sizes = []
    if not 1 <= len(sizes) <= 3 or not all(1 <= size <= MAX_SIZE for size in sizes):
        raise RequestError(f"{option} {text}: write one to three positive numbers, as in 16 or 4,4")
    x, y, z = [*sizes, 1, 1][:3]
    return (x, y, z)


def apply_arguments(
    spec: LaunchSpec,
    given: list[GivenArgument],
    grid: tuple[int, int, int] | None,
    block: tuple[int, int, int] | None,
) -> LaunchSpec:
    """The spec with arguments and sizes replaced; then its expected results no longer count.

    Raises:
        RequestError: an argument does not exist or does not fit its type.
    """
    if not given and grid is None and block is None:
        return spec
    known = [argument.name for argument in spec.args]
    replaced = {argument.name: argument for argument in given}
    for name in replaced:
        if name not in known:
            raise RequestError(f"the kernel has no argument '{name}'; it has {', '.join(known)}")
    args = tuple(
        _replaced(argument, replaced[argument.name]) if argument.name in replaced else argument
        for argument in spec.args
    )
    return replace(spec, args=args, grid=grid or spec.grid, block=block or spec.block, expected={})


def _replaced(old: Argument, new: GivenArgument) -> Argument:
    from qgpu_ptx.launch_spec import ArrayArgument

    is_array = isinstance(old, ArrayArgument)
    if is_array != new.is_array:
        wanted = "an array" if is_array else "one number"
        raise RequestError(f"argument '{old.name}' is {wanted}")
    type_ = old.type
    if new.type is not None and new.type != type_ and TYPE_BYTES[new.type] != TYPE_BYTES[type_]:
        raise RequestError(f"argument '{old.name}' is {type_}, not {new.type}")
    _check_range(old.name, type_, new.values)
    if isinstance(old, ArrayArgument):
        return replace(old, values=new.values)
    return replace(old, value=new.values[0])


def make_arguments(
    given: list[GivenArgument], parameters: Sequence[Parameter] | None = None
) -> tuple[Argument, ...]:
    """Arguments for a launch without a spec, every array an output.

    Args:
        given: in the order of the command line.
        parameters: the kernel's, in its order; None if they are not known: then the order given
            is the kernel's.

    Raises:
        RequestError: a parameter is missing, does not exist or has another type.
    """
    if parameters is None:
        return tuple(_made(argument, argument.type or "s32") for argument in given)
    by_name = {argument.name: argument for argument in given}
    known = ", ".join(p.name for p in parameters) or "none"
    for name in by_name.keys() - {p.name for p in parameters}:
        raise RequestError(f"the kernel has no argument '{name}'; it has {known}")
    missing = [p.name for p in parameters if p.name not in by_name]
    if missing:
        raise RequestError(
            f"no value for {', '.join(missing)}: the kernel takes {known}; give --arg NAME=VALUE "
            "for each, or a launch spec"
        )
    return tuple(_made_for(parameter, by_name[parameter.name]) for parameter in parameters)


def _made_for(parameter: Parameter, given: GivenArgument) -> Argument:
    if parameter.is_pointer is not None and parameter.is_pointer != given.is_array:
        wanted = "an array" if parameter.is_pointer else "one number"
        raise RequestError(f"argument '{given.name}' is {wanted}")
    type_ = given.type or parameter.type or "s32"
    if parameter.type is not None and TYPE_BYTES[parameter.type] != TYPE_BYTES[type_]:
        raise RequestError(f"argument '{given.name}' is {parameter.type}, not {type_}")
    return _made(given, type_)


def _made(given: GivenArgument, type_: str) -> Argument:
    from qgpu_ptx.launch_spec import ArrayArgument, ScalarArgument

    _check_range(given.name, type_, given.values)
    if given.is_array:
        return ArrayArgument(given.name, type_, given.values, output=True)
    return ScalarArgument(given.name, type_, given.values[0])


def _check_range(name: str, type_: str, values: tuple[int, ...]) -> None:
    bits = 8 * TYPE_BYTES[type_]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)
    for value in values:
        if not low <= value <= high:
            raise RequestError(f"argument '{name}': {value} does not fit {type_}")
