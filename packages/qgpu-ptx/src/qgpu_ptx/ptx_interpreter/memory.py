"""State spaces and addresses of a launch.

One flat generic space holds everything. Global and constant addresses are generic addresses;
shared, local and param addresses are offsets into their window (PTX ISA, "Generic Addressing").
All windows lie below 2**32, so 32-bit and 64-bit modules run alike.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qgpu_ptx.diagnostics import MemoryFaultError, MisalignedAccessError

if TYPE_CHECKING:
    from qgpu_ptx.ptx_interpreter.machine import Lane

WINDOW_BYTES = 0x0100_0000
WINDOWS = {"shared": 0x0100_0000, "local": 0x0200_0000, "param": 0x0300_0000}
CONST_BASE = 0x0400_0000
GLOBAL_BASE = 0x1000_0000
# Allocations start on multiples of 4 KiB with at least one untouched page between two, so that an
# index that runs a little past the end of an array faults.
PAGE = 4096


@dataclass
class Allocation:
    """A named range of global or constant memory."""

    name: str
    start: int
    data: bytearray
    read_only: bool = False


@dataclass
class DeviceMemory:
    """Global and constant memory of a launch."""

    allocations: list[Allocation] = field(default_factory=list)
    _next: dict[str, int] = field(
        default_factory=lambda: {"const": CONST_BASE, "global": GLOBAL_BASE}
    )
    _starts: list[int] = field(default_factory=list)

    def allocate(self, name: str, data: bytearray, space: str = "global") -> Allocation:
        """Places `data`; the allocation keeps (and kernels write to) this very bytearray."""
        start = self._next[space]
        pages = -(-max(1, len(data)) // PAGE) + 1
        self._next[space] = start + pages * PAGE
        allocation = Allocation(name, start, data, read_only=space == "const")
        self.allocations.append(allocation)
        self.allocations.sort(key=lambda a: a.start)
        self._starts = [a.start for a in self.allocations]
        return allocation

    def find(self, address: int) -> Allocation | None:
        """The last allocation that starts at or before `address`."""
        index = bisect_right(self._starts, address) - 1
        return self.allocations[index] if index >= 0 else None


def to_generic(space: str, address: int) -> int:
    """`cvta`: a state space address as a generic address."""
    return address + WINDOWS.get(space, 0)


def from_generic(space: str, address: int) -> int:
    """`cvta.to`: the reverse; no check, as in hardware."""
    return address - WINDOWS.get(space, 0)


def space_of(address: int) -> str:
    """The state space that a generic address lies in (`isspacep`)."""
    for space, base in WINDOWS.items():
        if base <= address < base + WINDOW_BYTES:
            return space
    if CONST_BASE <= address < GLOBAL_BASE:
        return "const"
    return "global"


def locate(
    lane: Lane, space: str, address: int, size: int, *, write: bool = False
) -> tuple[bytearray, int]:
    """The bytes that hold an access and the offset of its first byte.

    `space` may be "generic". Raises MisalignedAccessError, MemoryFaultError.
    """
    if address % size:
        raise MisalignedAccessError(
            f"{space} address {address:#x} is not a multiple of the access size {size}",
            thread=lane.name,
        )
    if space == "generic":
        space = space_of(address)
        address = from_generic(space, address)
    if space in WINDOWS:
        data = _window(lane, space)
        offset = address
        what = f"{space} memory holds {len(data)} bytes"
    else:
        allocation = lane.cta.memory.find(address)
        data = allocation.data if allocation else bytearray()
        offset = address - allocation.start if allocation else -1
        what = "no allocation is near"
        if allocation:
            what = f"offset {offset} of '{allocation.name}', which holds {len(data)} bytes"
            if write and allocation.read_only:
                raise MemoryFaultError(
                    f"store to constant memory '{allocation.name}'", thread=lane.name
                )
    if not 0 <= offset <= len(data) - size:
        kind = "store" if write else "load"
        raise MemoryFaultError(
            f"{kind} of {size} bytes at {space} address {address:#x} is out of bounds: {what}",
            thread=lane.name,
        )
    return data, offset


def _window(lane: Lane, space: str) -> bytearray:
    if space == "shared":
        return lane.cta.shared
    return lane.local if space == "local" else lane.frame.param
