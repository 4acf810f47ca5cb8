"""The table of supported instructions: one record per opcode and shape of modifiers.

The grammar accepts any opcode; this table decides what is legal. A module of instructions
registers a function per mnemonic with `lane_instruction` (a pure function of one thread's values)
or `instruction` (everything else). Error messages and documentation are made from the records.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qgpu_ptx.diagnostics import UnsupportedInstructionError
from qgpu_ptx.ptx_ast import Instruction
from qgpu_ptx.ptx_interpreter.scalar_types import FLOAT_WORDS, SCALAR_TYPES, ScalarType, wide

if TYPE_CHECKING:
    from qgpu_ptx.ptx_interpreter.machine import Code, Lane, Warp
    from qgpu_ptx.ptx_interpreter.operands import OperandDecoder

Modifiers = Mapping[str, str]
Executor = Callable[["Warp", "list[Lane]"], None]
# Called before each instruction with the function, the instruction's index in it, the lanes that
# reach it and those of them for which its guard holds.
Observer = Callable[["Code", int, "list[Lane]", "list[Lane]"], None]
Decoder = Callable[["OperandDecoder", Modifiers], Executor]
LaneFunction = Callable[..., "int | tuple[int, ...]"]

INTEGERS = "u16|u32|u64|s16|s32|s64"
SIGNED = "s16|s32|s64"
BITS = "b16|b32|b64"
ALL_INTEGERS = f"{BITS}|{INTEGERS}"


@dataclass(frozen=True)
class Slot:
    """One modifier position: its name, the words it may hold, whether it may be absent."""

    name: str
    choices: tuple[str, ...]
    optional: bool

    def __str__(self) -> str:
        words = self.choices[0] if len(self.choices) == 1 else "{" + ",".join(self.choices) + "}"
        return f"{{.{words}}}" if self.optional else f".{words}"


@dataclass(frozen=True)
class InstructionSpec:
    """One legal shape of an opcode.

    `slots` are its ordered modifiers, `decode` turns an instruction's operands into an executor,
    `control` says that it may change where lanes go next, `reference` names the section of the PTX
    ISA, `operands` describes the operands where the shape is regular ("T <- T T").
    """

    opcode: str
    slots: tuple[Slot, ...]
    decode: Decoder
    control: bool
    reference: str
    operands: str
    summary: str

    def __str__(self) -> str:
        return self.opcode + "".join(map(str, self.slots))

    def match(self, modifiers: Sequence[str]) -> dict[str, str] | None:
        """Words by slot name, or None where `modifiers` do not fit the slots in order."""
        return _match(self.slots, tuple(modifiers))


_TABLE: dict[str, list[InstructionSpec]] = {}


def _match(slots: tuple[Slot, ...], words: tuple[str, ...]) -> dict[str, str] | None:
    if not slots:
        return {} if not words else None
    slot, rest = slots[0], slots[1:]
    if words and words[0] in slot.choices:
        found = _match(rest, words[1:])
        if found is not None:
            return {slot.name: words[0], **found}
    return _match(rest, words) if slot.optional else None


def _slots(text: str) -> tuple[Slot, ...]:
    """Reads "sat?=sat type=s32|u32": a space between slots, `?` for optional, `|` for choices."""
    slots = []
    for part in text.split():
        name, choices = part.split("=")
        slots.append(Slot(name.removesuffix("?"), tuple(choices.split("|")), name.endswith("?")))
    return tuple(slots)


def instruction(
    opcode: str, modifiers: str = "", *, reference: str, control: bool = False, operands: str = ""
) -> Callable[[Decoder], Decoder]:
    """Registers a decoder: it reads the operands once and returns what each execution does."""

    def register(decode: Decoder) -> Decoder:
        summary = (decode.__doc__ or "").strip().split("\n")[0]
        spec = InstructionSpec(
            opcode, _slots(modifiers), decode, control, reference, operands, summary
        )
        _TABLE.setdefault(opcode, []).append(spec)
        return decode

    return register


def lane_instruction(
    opcode: str, modifiers: str, operands: str, *, reference: str
) -> Callable[[LaneFunction], LaneFunction]:
    """Registers a pure function of one thread's source values.

    `operands` reads "T <- T u32": types of destinations and sources, where T is the `type` slot, W
    twice its width, and another word is a type or the name of a slot that holds one. The function
    gets the modifiers and the source values (negative for signed types) and returns the
    destination value, of any size: it is cut to the destination's width.
    """
    destination_words, source_words = (side.split() for side in operands.split("<-"))

    def register(function: LaneFunction) -> LaneFunction:
        def decode(d: OperandDecoder, m: Modifiers) -> Executor:
            d.expect(len(destination_words) + len(source_words))
            writers = [
                d.writer(operand, operand_type(word, m))
                for operand, word in zip(d.operands, destination_words, strict=False)
            ]
            sources = d.operands[len(writers) :]
            readers = [
                d.reader(operand, operand_type(word, m))
                for operand, word in zip(sources, source_words, strict=True)
            ]
            write = writers[0]

            def execute(warp: Warp, lanes: list[Lane]) -> None:
                for lane in lanes:
                    write(lane, function(m, *[read(lane) for read in readers]))  # type: ignore[arg-type]

            return execute

        decode.__doc__ = function.__doc__
        instruction(opcode, modifiers, reference=reference, operands=operands)(decode)
        return function

    return register


def operand_type(word: str, modifiers: Modifiers) -> ScalarType:
    """The type that a word of an operand description stands for."""
    if word == "T":
        return SCALAR_TYPES[modifiers["type"]]
    if word == "W":
        return wide(SCALAR_TYPES[modifiers["type"]])
    return SCALAR_TYPES[modifiers.get(word, word)]


def supported_instructions() -> dict[str, tuple[InstructionSpec, ...]]:
    """Every legal shape by opcode, sorted by opcode."""
    return {opcode: tuple(_TABLE[opcode]) for opcode in sorted(_TABLE)}


def find_instruction(node: Instruction) -> tuple[InstructionSpec, Modifiers]:
    """The record for an instruction and its modifiers by slot name.

    Raises UnsupportedInstructionError with what is supported instead.
    """
    specs = _TABLE.get(node.opcode, [])
    for spec in specs:
        found = spec.match(node.modifiers)
        if found is not None:
            return spec, found
    floats = sorted(FLOAT_WORDS.intersection(node.modifiers))
    if floats:
        hint = f"floating point (.{floats[0]}) is not supported: only integers are computed"
    elif specs:
        hint = f"'{node.opcode}' is supported with the modifiers listed, in that order"
    else:
        close = difflib.get_close_matches(node.opcode, _TABLE, n=1)
        hint = f"did you mean '{close[0]}'?" if close else "see the list of supported opcodes"
    raise UnsupportedInstructionError(
        f"'{node.mnemonic}' is not supported",
        span=node.span,
        found=node.mnemonic,
        expected=[str(spec) for spec in specs] or sorted(_TABLE),
        hint=hint,
    )
