"""Every instruction, defined once; importing this package fills the table."""

from qgpu_isa.instructions import compare, integer, logic, memory, multiply

__all__ = ["compare", "integer", "logic", "memory", "multiply"]
