"""Types of values: how many numbers in which arrangement, and whether they are truth values."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

Shape = tuple[int, ...]


@dataclass(frozen=True)
class ValueType:
    """A scalar, a vector or a matrix.

    Attributes:
        shape: as numpy's; () is a scalar.
        truth: whether its numbers are 0 and 1 for false and true.
    """

    shape: Shape
    truth: bool = False

    @property
    def size(self) -> int:
        """How many numbers."""
        return prod(self.shape)

    @property
    def is_scalar(self) -> bool:
        return not self.shape

    def __str__(self) -> str:
        match self.shape:
            case ():
                return "a scalar"
            case (n,):
                return f"a vector of {n}"
            case _:
                return f"a {'x'.join(map(str, self.shape))} matrix"
