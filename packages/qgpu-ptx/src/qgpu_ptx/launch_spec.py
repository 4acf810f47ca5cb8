"""A launch written down in TOML beside a kernel: sizes, arguments, expected results."""

from __future__ import annotations

import tomllib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu_ptx.diagnostics import LaunchSpecError, SourceText
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES, ScalarType
from qgpu_ptx.text_files import read_text

# array.array type codes of 1, 2, 4 and 8 bytes on the platforms this package is built for.
_TYPE_CODES = {
    "s8": "b", "u8": "B", "s16": "h", "u16": "H", "s32": "i", "u32": "I", "s64": "q", "u64": "Q",
}  # fmt: skip
ARGUMENT_TYPES = tuple(_TYPE_CODES)
MAX_ELEMENTS = 1 << 24


@dataclass(frozen=True)
class ScalarArgument:
    """A number passed by value."""

    name: str
    type: str
    value: int


@dataclass(frozen=True)
class ArrayArgument:
    """An array passed by pointer; `output` says that its contents after the launch are wanted."""

    name: str
    type: str
    values: tuple[int, ...]
    output: bool = False


Argument = ScalarArgument | ArrayArgument


@dataclass(frozen=True)
class LaunchSpec:
    """One launch of one kernel.

    `kernel` is the entry's name, `grid` and `block` have three numbers, `args` are in parameter
    order, `expected` gives the wanted contents of output arrays by name.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Argument, ...]
    expected: Mapping[str, tuple[int, ...]]
    dynamic_shared_bytes: int = 0
    summary: str = ""

    def interpreter_arguments(self) -> list[int | array[int]]:
        """Arguments for `run_ptx`: ints, and fresh arrays for pointers."""
        return [
            argument.value
            if isinstance(argument, ScalarArgument)
            else array(_TYPE_CODES[argument.type], argument.values)
            for argument in self.args
        ]

    @property
    def outputs(self) -> tuple[ArrayArgument, ...]:
        """The arrays whose results are wanted."""
        return tuple(a for a in self.args if isinstance(a, ArrayArgument) and a.output)


def load_launch_spec(path: Path) -> LaunchSpec:
    """Reads a TOML file. Raises InputFileError, LaunchSpecError."""
    return parse_launch_spec(read_text(path), str(path))


def parse_launch_spec(text: str, filename: str = "<spec>") -> LaunchSpec:
    """A LaunchSpec from TOML text. Raises LaunchSpecError naming the key that is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        source = SourceText(filename, text)
        span = source.span(0, 0)
        raise LaunchSpecError(f"{filename} is not TOML: {error}", span=span) from None
    return _Reader(filename).spec(data)


class _Reader:
    """Checks each key of the tables; `where` names the place in messages."""

    def __init__(self, filename: str) -> None:
        self._filename = filename

    def _error(
        self, message: str, *, expected: Sequence[str] = (), hint: str | None = None
    ) -> LaunchSpecError:
        return LaunchSpecError(f"{self._filename}: {message}", expected=expected, hint=hint)

    def _keys(self, table: Mapping[str, Any], where: str, known: Sequence[str]) -> None:
        for key in table:
            if key not in known:
                raise self._error(f"unknown key '{key}' in {where}", expected=known)

    def _integer(self, value: Any, where: str, low: int, high: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._error(f"{where} is {value!r}, not an integer")
        if not low <= value <= high:
            raise self._error(f"{where} is {value}, outside {low} to {high}")
        return value

    def _string(self, table: Mapping[str, Any], key: str, where: str) -> str:
        value = table.get(key)
        if not isinstance(value, str) or not value:
            raise self._error(f'{where} needs {key} = "..."')
        return value

    def _list(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise self._error(f"{where} is {value!r}, not a list")
        return value

    def _sizes(self, value: Any, where: str) -> tuple[int, int, int]:
        sizes = self._list(value, where)
        if not 1 <= len(sizes) <= 3:
            raise self._error(f"{where} has {len(sizes)} numbers", expected=["1 to 3 numbers"])
        x, y, z = [*(self._integer(n, where, 1, 1 << 31) for n in sizes), 1, 1][:3]
        return (x, y, z)

    def spec(self, data: Mapping[str, Any]) -> LaunchSpec:
        """The whole file."""
        known = ("kernel", "grid", "block", "dynamic_shared_bytes", "summary", "args", "expected")
        self._keys(data, "the file", known)
        args = tuple(
            self._argument(table, f"argument {number}")
            for number, table in enumerate(self._list(data.get("args", []), "args"), 1)
        )
        names = [argument.name for argument in args]
        for name in names:
            if names.count(name) > 1:
                raise self._error(f"two arguments are called '{name}'")
        return LaunchSpec(
            kernel=self._string(data, "kernel", "the file"),
            grid=self._sizes(data.get("grid"), "grid"),
            block=self._sizes(data.get("block"), "block"),
            args=args,
            expected=self._expected(data.get("expected", {}), args),
            dynamic_shared_bytes=self._integer(
                data.get("dynamic_shared_bytes", 0), "dynamic_shared_bytes", 0, 1 << 24
            ),
            summary=self._string(data, "summary", "the file") if "summary" in data else "",
        )

    def _argument(self, table: Any, where: str) -> Argument:
        if not isinstance(table, dict):
            raise self._error(f"{where} is not a table", hint="write it as [[args]]")
        name = self._string(table, "name", where)
        where = f"argument '{name}'"
        spelled = self._string(table, "type", where)
        type_name = spelled.removesuffix("*")
        if type_name not in _TYPE_CODES or spelled.count("*") > 1:
            raise self._error(
                f"{where} has type '{spelled}'",
                expected=[*_TYPE_CODES, "and these with * for a pointer"],
            )
        type_ = SCALAR_TYPES[type_name]
        if not spelled.endswith("*"):
            self._keys(table, where, ("name", "type", "value"))
            value = self._integer(table.get("value"), f"the value of {where}", *type_.range)
            return ScalarArgument(name, type_name, value)
        self._keys(table, where, ("name", "type", "values", "length", "output"))
        output = table.get("output", False)
        if not isinstance(output, bool):
            raise self._error(f"output of {where} is {output!r}", expected=["true", "false"])
        if ("values" in table) == ("length" in table):
            raise self._error(f"{where} needs either values or length")
        if "length" in table:
            length = self._integer(table["length"], f"the length of {where}", 0, MAX_ELEMENTS)
            values = (0,) * length
        else:
            values = self._values(table["values"], f"values of {where}", type_)
        return ArrayArgument(name, type_name, values, output)

    def _values(self, value: Any, where: str, type_: ScalarType) -> tuple[int, ...]:
        return tuple(
            self._integer(item, f"{where}, item {index},", *type_.range)
            for index, item in enumerate(self._list(value, where))
        )

    def _expected(self, table: Any, args: tuple[Argument, ...]) -> dict[str, tuple[int, ...]]:
        if not isinstance(table, dict):
            raise self._error("expected is not a table")
        arrays = {a.name: a for a in args if isinstance(a, ArrayArgument) and a.output}
        self._keys(table, "expected", tuple(arrays))
        result = {}
        for name, values in table.items():
            argument = arrays[name]
            where = f"expected.{name}"
            result[name] = self._values(values, where, SCALAR_TYPES[argument.type])
            if len(result[name]) != len(argument.values):
                raise self._error(
                    f"{where} has {len(result[name])} values, the array has {len(argument.values)}"
                )
        return result
