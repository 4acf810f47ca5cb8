"""What an instruction is, and the table that holds each one exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from qgpu_isa.units import Alu, LoadStore, Multiplier


class Slot(IntEnum):
    """The slots of a block, in the order in which they execute and are emitted.

    `A0` feeds `MEM` its address; `A1` and `X` run side by side; `A2` runs last.
    """

    A0 = 0
    MEM = 1
    A1 = 2
    X = 3
    A2 = 4


ALU_SLOTS = (Slot.A0, Slot.A1, Slot.A2)
LATER_ALU_SLOTS = (Slot.A1, Slot.A2)

Unit = Alu | LoadStore | Multiplier


@dataclass(frozen=True)
class Instruction:
    """One instruction: everything every stage needs to know of it.

    Attributes:
        name: mnemonic.
        opcode: stable number within its unit's 5-bit field; checkpoints embed it.
        slots: slots it may occupy.
        unit: control row of the functional unit that executes it.
        semantics: the value on 32-bit unsigned words: (a, b, flag) -> word, where flag is the
            selecting predicate for instructions that take one.
        doc: manual text.
    """

    name: str
    opcode: int
    slots: tuple[Slot, ...]
    unit: Unit
    semantics: Callable[[int, int, bool], int]
    doc: str

    @property
    def is_compare(self) -> bool:
        """Whether the result is a truth value (and may be written to a predicate)."""
        return isinstance(self.unit, Alu) and self.unit.result == "flag"


class InstructionTable:
    """All instructions, by name and by (unit, opcode)."""

    def __init__(self) -> None:
        self._by_name: dict[str, Instruction] = {}
        self._by_code: dict[tuple[type, int], Instruction] = {}

    def register(self, instruction: Instruction) -> None:
        """Adds an instruction.

        Raises:
            ValueError: its name or opcode is taken, its opcode does not fit, or it has no doc.
        """
        code = (type(instruction.unit), instruction.opcode)
        if instruction.name in self._by_name:
            raise ValueError(f"instruction {instruction.name} is defined twice")
        if code in self._by_code:
            other = self._by_code[code].name
            raise ValueError(f"{instruction.name} and {other} share opcode {instruction.opcode}")
        if not 1 <= instruction.opcode < 32:
            raise ValueError(f"{instruction.name}: opcode {instruction.opcode} is not in 1..31")
        if not instruction.doc:
            raise ValueError(f"{instruction.name} has no documentation")
        self._by_name[instruction.name] = instruction
        self._by_code[code] = instruction

    def __getitem__(self, name: str) -> Instruction:
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def for_unit(self, unit: type) -> tuple[Instruction, ...]:
        """Instructions of one functional unit, by opcode."""
        found = [i for i in self._by_name.values() if isinstance(i.unit, unit)]
        return tuple(sorted(found, key=lambda i: i.opcode))

    def decode(self, slot: Slot, opcode: int) -> Instruction | None:
        """The instruction that `opcode` means in `slot`; None for an empty slot or no such."""
        found = self._by_code.get((unit_of_slot(slot), opcode))
        return found if found is not None and slot in found.slots else None


def unit_of_slot(slot: Slot) -> type:
    """The functional unit that sits in a slot."""
    if slot is Slot.MEM:
        return LoadStore
    return Multiplier if slot is Slot.X else Alu


INSTRUCTIONS = InstructionTable()


def instruction(
    *, opcode: int, slots: tuple[Slot, ...], unit: Unit
) -> Callable[[Callable[[int, int, bool], int]], Callable[[int, int, bool], int]]:
    """Registers the decorated function as an instruction.

    The function's name (less a trailing underscore) is the mnemonic, its docstring the manual
    text, its body the semantics.
    """

    def wrap(semantics: Callable[[int, int, bool], int]) -> Callable[[int, int, bool], int]:
        INSTRUCTIONS.register(
            Instruction(
                name=semantics.__name__.rstrip("_"),
                opcode=opcode,
                slots=slots,
                unit=unit,
                semantics=semantics,
                doc=(semantics.__doc__ or "").strip(),
            )
        )
        return semantics

    return wrap
