"""The shape of a launch: all that a kernel may depend on besides its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchShape:
    """Grid and block sizes (x, y, z), and bytes of dynamic shared memory."""

    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int = 0

    @property
    def threads(self) -> int:
        """Threads of one CTA."""
        return prod(self.block)

    @property
    def ctas(self) -> int:
        return prod(self.grid)
