"""Where a launch's data lies in the machine's memory.

Global words hold, in order: nothing (so that no array has address 0), the arrays that pointer
arguments name, `.global` and `.const` variables, each thread's local memory, spilled registers.
Shared words hold static variables, dynamic shared memory, and scratch words for warp operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu_isa.machine_config import MachineConfig

from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lowering_errors import machine_limit
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

WORD_BYTES = 4


@dataclass(frozen=True)
class PlacedArray:
    """An array of a pointer argument: its byte address and element type."""

    name: str
    type: str
    address: int
    values: tuple[int, ...]
    output: bool = False

    @property
    def words(self) -> range:
        """Addresses of the words it lies in."""
        size = SCALAR_TYPES[self.type].bytes * len(self.values)
        return range(self.address // WORD_BYTES, -(-(self.address + size) // WORD_BYTES))


@dataclass(frozen=True)
class ArgumentLayout:
    """The arguments of a launch as the kernel sees them.

    `arguments` has a number for each parameter (a pointer's byte address or a scalar's value) or
    the bytes of a structure; `memory` the initial words of the arrays; `end` the first free byte.
    """

    arguments: tuple[int | bytes, ...]
    arrays: tuple[PlacedArray, ...]
    memory: Mapping[int, int]
    end: int


def align_up(address: int, alignment: int) -> int:
    """The first multiple of `alignment` at or after `address`."""
    return -(-address // alignment) * alignment


def place_arguments(spec: LaunchSpec, config: MachineConfig) -> ArgumentLayout:
    """Places the arrays of a launch in global words.

    Raises:
        MachineLimitError: they do not fit.
    """
    # Rows of addresses are cheapest to send when they begin at a multiple of the lanes.
    unit = max(16, WORD_BYTES * config.lanes)
    address = unit
    arguments: list[int | bytes] = []
    arrays = []
    memory: dict[int, int] = {}
    for argument in spec.args:
        if not isinstance(argument, ArrayArgument):
            arguments.append(argument.value)
            continue
        array = PlacedArray(argument.name, argument.type, address, argument.values, argument.output)
        arrays.append(array)
        arguments.append(address)
        memory |= bytes_to_words(_encode(argument.type, argument.values), address)
        size = SCALAR_TYPES[argument.type].bytes * len(argument.values)
        address = align_up(address + size, unit)
    limit = WORD_BYTES * config.global_words
    if address > limit:
        raise machine_limit(
            config,
            "global_words",
            f"the arrays need {address // WORD_BYTES} global words; "
            f"machine '{config.name}' has {config.global_words}",
        )
    return ArgumentLayout(tuple(arguments), tuple(arrays), memory, address)


def _encode(type_name: str, values: Sequence[int]) -> bytes:
    type_ = SCALAR_TYPES[type_name]
    return b"".join((v & type_.mask).to_bytes(type_.bytes, "little") for v in values)


def bytes_to_words(data: bytes, address: int) -> dict[int, int]:
    """The words that `data` fills from a word-aligned byte address on."""
    return {
        (address + i) // WORD_BYTES: int.from_bytes(data[i : i + WORD_BYTES], "little")
        for i in range(0, len(data), WORD_BYTES)
    }


def read_array(memory: Sequence[int], array: PlacedArray) -> list[int]:
    """The values of an array in the machine's memory words."""
    type_ = SCALAR_TYPES[array.type]
    data = b"".join(memory[w].to_bytes(WORD_BYTES, "little") for w in array.words)
    return [
        type_.value(int.from_bytes(data[i : i + type_.bytes], "little"))
        for i in range(0, type_.bytes * len(array.values), type_.bytes)
    ]


def read_outputs(memory: Sequence[int], layout: ArgumentLayout) -> dict[str, list[int]]:
    """The output arrays by name, from the machine's memory words."""
    return {a.name: read_array(memory, a) for a in layout.arrays if a.output}
