"""One file per family of PTX instructions; importing this package fills EXPANSIONS."""

from qgpu_ptx.expansions import (  # noqa: F401  (imported for the expansions they register)
    arithmetic,
    atomic,
    barrier,
    bit_fields,
    carry_chains,
    comparison,
    control,
    conversion,
    division,
    logic,
    memory,
    shuffle,
    vote,
)
from qgpu_ptx.expansions.registry import EXPANSIONS, Expansion

__all__ = ["EXPANSIONS", "Expansion"]
