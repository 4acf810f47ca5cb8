"""The table of expansions: how each PTX opcode becomes machine operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qgpu_ptx.instruction_context import InstructionContext

Modifiers = Mapping[str, str]
Expansion = Callable[[InstructionContext, Modifiers], None]

EXPANSIONS: dict[str, Expansion] = {}


def expansion(*opcodes: str) -> Callable[[Expansion], Expansion]:
    """Registers the expansion of some opcodes; it emits through the context's builder."""

    def register(function: Expansion) -> Expansion:
        for opcode in opcodes:
            if opcode in EXPANSIONS:
                raise ValueError(f"{opcode} has two expansions")
            EXPANSIONS[opcode] = function
        return function

    return register
