"""Every instruction, defined once; importing this package fills the table."""

from qgpu_isa.instructions import bits, compare, integer, logic, memory, multiply

__all__ = ["bits", "compare", "integer", "logic", "memory", "multiply"]
