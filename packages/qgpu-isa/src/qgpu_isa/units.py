"""Control rows: what a functional unit is told to do for an instruction.

A row is the whole link between an instruction and its circuit: the circuit of each unit decodes
the opcode into the row's fields, and several instructions share the unit's gates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AluResult = (
    Literal["sum", "and", "or", "xor", "choose", "flag"]
    | Literal["ones", "leading", "trailing", "reverse", "byte", "half", "clear_byte", "ballot"]
)
AluFlag = Literal["none", "eq", "ltu", "lts", "pred", "forward"]


@dataclass(frozen=True)
class Alu:
    """Control row of an arithmetic-logic unit (slots A0, A1, A2).

    Attributes:
        result: which of the unit's outputs is the result; `choose` is `a` where the flag holds
            and `b` elsewhere, `flag` is the flag as 0 or 1; `ones`, `leading`, `trailing` (zeros)
            and `reverse` look at the bits of `a` alone; `byte` and `half` take the part of `a` at
            byte address `b`, `clear_byte` all but that byte; `ballot` has the flags of all lanes
            that execute the block, as bits of one word.
        subtract: the adder computes `a - b` (needed by `sub` and every comparison).
        flag: where the flag comes from: a comparison of a with b, the slot's predicate operand,
            or the flag of slot A1.
        negate: inverts the flag.
        shift_a: `a` is shifted left by this many bits first (slot A0 only).
        extend: the part's top bit fills the rest of the word.
    """

    result: AluResult
    subtract: bool = False
    flag: AluFlag = "none"
    negate: bool = False
    shift_a: int = 0
    extend: bool = False

    @property
    def reads_b(self) -> bool:
        """Whether the result depends on the second operand, apart from the flag."""
        return self.result not in ("ones", "leading", "trailing", "reverse")


@dataclass(frozen=True)
class LoadStore:
    """Control row of the memory unit.

    Attributes:
        load: the addressed word is the slot's result.
        store: the slot's data operand is written to the addressed word.
        exclusive: lanes that address the same word go one at a time (for atomics).
        size: bytes of what is addressed, of which the address must be a multiple. What is read is
            always the word that holds it; stores of less than a word are described at `stb`.
    """

    load: bool = False
    store: bool = False
    exclusive: bool = False
    size: int = 4


@dataclass(frozen=True)
class Multiplier:
    """Control row of the multiplier, which also shifts (by multiplying with a power of two).

    Attributes:
        high: the result is the upper word of the 64-bit product.
        signed_a, signed_b: how the factors' top bits count.
        shift: `b` is a shift amount: "left" multiplies by 2**b, "right" by 2**(32-b), "bytes" by
            256**(b & 3).
    """

    high: bool = False
    signed_a: bool = False
    signed_b: bool = False
    shift: Literal["none", "left", "right", "bytes"] = "none"
