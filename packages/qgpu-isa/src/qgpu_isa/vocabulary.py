"""The tokens the machine reads and writes.

A token is a class and a payload of named fields. Tokens are numbered class by class, payloads in
ascending order, from 0; a merged checkpoint adds its offset behind Qwen's vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from qgpu_isa.encoding import ROM_PARTS
from qgpu_isa.errors import TokenError
from qgpu_isa.instruction import Slot
from qgpu_isa.machine_config import (
    CHUNKS_PER_RECORD,
    NIBBLE_BITS,
    WORD_BITS,
    MachineConfig,
    bits_for,
)


class TokenClass(IntEnum):
    """Kinds of token; the value is the class code that the weights see."""

    RAW = 0
    UNIFORM = 1
    LINEAR = 2
    LINEAR4 = 3
    BITS = 4
    SAME = 5
    WORD = 6
    GROUP = 7
    ROW = 8
    EXEC = 9
    MASK = 10
    STOP = 11
    PROG = 12
    MEM = 13
    CTA = 14
    INIT = 15
    END = 16
    FAULT = 17


class Fault(IntEnum):
    """Why a launch ended in a FAULT token."""

    OUT_OF_RANGE = 0
    MISALIGNED = 1
    TRAP = 2


CLASS_BITS = 5

WORD_NIBBLES = WORD_BITS // NIBBLE_BITS


@dataclass(frozen=True)
class PayloadField:
    """A field of a class's payload: how many values it takes and the bits it fills."""

    name: str
    count: int

    @property
    def width(self) -> int:
        return bits_for(self.count)


@dataclass(frozen=True)
class Token:
    """A token by class and field values, in the order of the class's fields."""

    cls: TokenClass
    values: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.cls.name}({', '.join(map(str, self.values))})"


class Vocabulary:
    """All tokens of one machine: ids, fields, and the bit code of each."""

    def __init__(self, config: MachineConfig) -> None:
        self.config = config
        self.fields: dict[TokenClass, tuple[PayloadField, ...]] = {}
        live = PayloadField("slot", len(Slot))
        small = PayloadField("value", 1 << self.small_bits)
        layout: dict[TokenClass, tuple[PayloadField, ...]] = {
            TokenClass.RAW: (PayloadField("bits", 1 << config.payload_bits),),
            TokenClass.UNIFORM: (small, live),
            TokenClass.LINEAR: (small, live),
            TokenClass.LINEAR4: (small, live),
            TokenClass.BITS: (PayloadField("lanes", 1 << config.lanes), live),
            TokenClass.SAME: (live,),
            TokenClass.WORD: (live,),
            TokenClass.GROUP: (
                PayloadField("bits", 1 << config.group_lanes),
                PayloadField("nibbles", 1 + WORD_NIBBLES),
                PayloadField("signed", 2),
                PayloadField("part", 2),
                PayloadField("group", config.groups),
                PayloadField("last", 2),
                live,
            ),
            TokenClass.ROW: (
                PayloadField("bits", 1 << config.lanes),
                PayloadField("pairs", 1 + CHUNKS_PER_RECORD),
                PayloadField("signed", 2),
                live,
            ),
            TokenClass.EXEC: (
                PayloadField("block", config.rom_blocks),
                PayloadField("pass", config.passes),
                PayloadField("phase", 2),
            ),
            TokenClass.MASK: (
                PayloadField("lanes", 1 << config.lanes),
                PayloadField("pass", config.passes),
            ),
            TokenClass.STOP: (
                PayloadField("status", 4),
                PayloadField("block", config.rom_blocks),
            ),
            TokenClass.PROG: (
                PayloadField("block", config.rom_blocks),
                PayloadField("part", ROM_PARTS * config.chunks_per_slot),
            ),
            TokenClass.MEM: (PayloadField("address", config.memory_words),),
            TokenClass.CTA: (),
            TokenClass.INIT: (
                PayloadField("pass", config.passes),
                PayloadField("masked", 2),
            ),
            TokenClass.END: (),
            TokenClass.FAULT: (PayloadField("cause", len(Fault)),),
        }
        self._first: dict[TokenClass, int] = {}
        size = 0
        for cls in TokenClass:
            self.fields[cls] = layout[cls]
            self._first[cls] = size
            size += self._count(cls)
        self.size = size
        widths = [sum(f.width for f in fields) for fields in layout.values()]
        self.payload_code_bits = max(widths)
        self.code_bits = CLASS_BITS + self.payload_code_bits

    @property
    def classes(self) -> tuple[TokenClass, ...]:
        """Classes that have tokens: ROW has none where a row is one group."""
        return tuple(cls for cls in TokenClass if self._count(cls))

    @property
    def small_bits(self) -> int:
        """Bits of the value that a one-token UNIFORM or LINEAR record carries."""
        return 11 if self.config.payload_bits >= 16 else 6

    def _count(self, cls: TokenClass) -> int:
        # A row of one group is sent as that.
        count = int(cls is not TokenClass.ROW or self.config.groups > 1)
        for field in self.fields[cls]:
            count *= field.count
        return count

    def range_of(self, cls: TokenClass) -> range:
        """Ids of a class."""
        first = self._first[cls]
        return range(first, first + self._count(cls))

    def encode(self, token: Token) -> int:
        """The token's id.

        Raises:
            TokenError: a field is out of range.
        """
        if token.cls not in self.classes:
            raise TokenError(f"{token}: machine '{self.config.name}' has no {token.cls.name}")
        index = 0
        for field, value in reversed(list(zip(self.fields[token.cls], token.values, strict=True))):
            if not 0 <= value < field.count:
                raise TokenError(f"{token}: field {field.name} must be below {field.count}")
            index = index * field.count + value
        return self._first[token.cls] + index

    def decode(self, token_id: int) -> Token:
        """The token with this id.

        Raises:
            TokenError: the id is not one of the machine's.
        """
        for cls in TokenClass:
            ids = self.range_of(cls)
            if token_id in ids:
                index = token_id - ids.start
                values = []
                for field in self.fields[cls]:
                    values.append(index % field.count)
                    index //= field.count
                return Token(cls, tuple(values))
        raise TokenError(f"token {token_id} is not one of the machine's {self.size}")

    def field_bits(self, cls: TokenClass, name: str) -> tuple[int, ...]:
        """Positions of a field's bits within the payload code, lowest first."""
        low = 0
        for field in self.fields[cls]:
            if field.name == name:
                return tuple(range(low, low + field.width))
            low += field.width
        raise TokenError(f"class {cls.name} has no field {name}")

    def payload(self, token: Token) -> int:
        """The payload's bit code: fields side by side, the first lowest."""
        code = low = 0
        for field, value in zip(self.fields[token.cls], token.values, strict=True):
            code |= value << low
            low += field.width
        return code


@lru_cache
def vocabulary(config: MachineConfig) -> Vocabulary:
    """The vocabulary of a machine."""
    return Vocabulary(config)
