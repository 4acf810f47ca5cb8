"""Which words of the machine's global memory arrays lie in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from qgpu_isa.machine_config import MachineConfig
from qgpu_ptx.lowering_errors import machine_limit
from qgpu_ptx.memory_layout import WORD_BYTES, align_up


class MemoryPool:
    """First-fit allocation; addresses are bytes, the lowest unit is never given out.

    Rows of addresses are cheapest to send when they begin at a multiple of the lanes.
    """

    def __init__(self, config: MachineConfig) -> None:
        self._config = config
        self._unit = max(16, WORD_BYTES * config.lanes)
        self._taken: dict[int, int] = {}

    @property
    def end(self) -> int:
        """The first byte behind all that is allocated."""
        return max(self._taken.values(), default=self._unit)

    @property
    def taken(self) -> dict[int, range]:
        """The words of each allocation, as word addresses, by its byte address."""
        return {s: range(s // WORD_BYTES, e // WORD_BYTES) for s, e in self._taken.items()}

    def allocate(self, size: int) -> int:
        """The address of `size` bytes, which hold anything.

        Raises:
            MachineLimitError: there are not as many left in one piece.
        """
        needed = max(self._unit, align_up(size, self._unit))
        address = self._unit
        for start, end in sorted(self._taken.items()):
            if start - address >= needed:
                break
            address = end
        limit = WORD_BYTES * self._config.global_words
        if address + needed > limit:
            raise machine_limit(
                self._config,
                "global_words",
                f"no place for an array of {size} bytes: machine '{self._config.name}' has "
                f"{self._config.global_words} global words, and arrays take "
                f"{sum(e - s for s, e in self._taken.items()) // WORD_BYTES} of them",
            )
        self._taken[address] = address + needed
        return address

    def free(self, address: int) -> None:
        """Gives an allocation back."""
        del self._taken[address]

    @contextmanager
    def borrowed(self) -> Iterator[list[int]]:
        """A list; the addresses put into it are freed at the end."""
        addresses: list[int] = []
        try:
            yield addresses
        finally:
            for address in addresses:
                self.free(address)
