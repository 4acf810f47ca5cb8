"""Remembers a division, so that quotient and remainder of the same operands share one."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_ptx.ir import ZERO, Value
from qgpu_ptx.ir_builder import IrBuilder

Division = tuple[Value, Value]
"""Quotient and remainder."""


@dataclass
class KnownDivisions:
    """The last division, by its operands and whether they are signed."""

    _key: tuple[Value, Value, bool] | None = None
    _where: str = ""
    _both: Division = (ZERO, ZERO)

    def find(self, b: IrBuilder, key: tuple[Value, Value, bool]) -> Division | None:
        """What was kept, if nothing has come between but operations of one block."""
        return self._both if key == self._key and b.here == self._where else None

    def keep(self, b: IrBuilder, key: tuple[Value, Value, bool], both: Division) -> None:
        """Keeps a division that ends here."""
        if not any(b.is_variable(v) for v in key[:2] if not isinstance(v, bool)):
            self._key, self._where, self._both = key, b.here, both
