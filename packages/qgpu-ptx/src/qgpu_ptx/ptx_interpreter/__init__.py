"""A reference SIMT interpreter of PTX: runs a grid of CTAs on Python integers.

`run_ptx` runs a kernel; `supported_instructions` and `find_instruction` give the table that
decides which instructions are legal.
"""

from qgpu_ptx.ptx_interpreter import (  # noqa: F401  (imported for the instructions they register)
    bit_operations,
    comparison,
    control_flow,
    data_movement,
    extended_precision,
    integer_arithmetic,
    synchronisation,
    warp_operations,
)
from qgpu_ptx.ptx_interpreter.instruction_table import (
    InstructionSpec,
    Slot,
    find_instruction,
    supported_instructions,
)
from qgpu_ptx.ptx_interpreter.launch import (
    DEFAULT_MAX_STEPS,
    LaunchOutcome,
    find_entry,
    run_ptx,
)
from qgpu_ptx.ptx_interpreter.memory_access import LOWEST_LANE_WINS
from qgpu_ptx.ptx_interpreter.special_registers import SPECIAL_REGISTERS

__all__ = [
    "DEFAULT_MAX_STEPS",
    "LOWEST_LANE_WINS",
    "SPECIAL_REGISTERS",
    "InstructionSpec",
    "LaunchOutcome",
    "Slot",
    "find_entry",
    "find_instruction",
    "run_ptx",
    "supported_instructions",
]
