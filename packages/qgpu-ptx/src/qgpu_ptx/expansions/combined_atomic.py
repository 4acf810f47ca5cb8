"""An atomic on one word that all threads share, done for the lanes of a pass together.

One lane after the other would send a row of registers back for each. Here every lane leaves its
operand in a scratch word, and all lanes go through these words in step: their running result is
the same in each, so that its row is short. A pass is not preempted, and lanes at other places of
the program wait for the smallest block, so nothing gets between.

Scratch words outside hold what the operation leaves alone, so that lanes which take no part do
not count. Where that is not zero, every thread sets its word when the kernel starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qgpu_ptx.expansions.wide_words import add_wide
from qgpu_ptx.ir import WORD, Address, Imm, Op, Special, Value
from qgpu_ptx.ir_builder import IrBuilder
from qgpu_ptx.ptx_interpreter.scalar_types import ScalarType
from qgpu_ptx.thread_values import thread

if TYPE_CHECKING:
    from qgpu_ptx.ast_to_ir import KernelLowering

Words = tuple[Value, ...]
SPACE = "combine"
"""Scratch words for operands: one area for each word of a value."""
SIGN = 1 << 31


@dataclass(frozen=True)
class Form:
    """How operands combine, and the word that leaves every other alone."""

    neutral: int
    combine: Callable[[IrBuilder, Words, Words], Words]


def _each(name: str) -> Callable[[IrBuilder, Words, Words], Words]:
    def combine(b: IrBuilder, x: Words, y: Words) -> Words:
        return tuple(b.op(name, p, q) for p, q in zip(x, y, strict=True))

    return combine


def _sum(b: IrBuilder, x: Words, y: Words) -> Words:
    if len(x) == 1:
        return (b.add(x[0], y[0]),)
    return add_wide(b, (x[0], x[1]), (y[0], y[1]))


def neutral_word(space: str) -> int | None:
    """What scratch words of a state space hold outside; None if it is no space of operands."""
    name, _, word = space.partition(" ")
    return int(word, 16) if name == SPACE else None


def combined_form(op: str, type_: ScalarType) -> Form | None:
    """How lanes' operands combine; None for operations that depend on the order of lanes."""
    match op:
        case "add":
            return Form(0, _sum)
        case "or" | "xor":
            return Form(0, _each(op))
        case "and":
            return Form(WORD, _each(op))
        case "max" | "min" if type_.bits == 32:
            lowest = SIGN if type_.signed else 0
            neutral = lowest if op == "max" else lowest ^ WORD
            return Form(neutral, _each(op + ("s" if type_.signed else "u")))
    return None


def combine_lanes(
    kernel: KernelLowering, form: Form, address: Imm, space: str, value: Words
) -> Words:
    """Emits the operation for all active lanes of the pass; gives each lane the old value."""
    b = kernel.builder
    lanes = min(kernel.config.lanes, kernel.shape.threads)
    neutral = Imm(form.neutral)
    operands = f"{SPACE} {form.neutral:x}"
    areas = [kernel.variables.scratch(f"{operands} {i}", lanes) for i in range(len(value))]
    earlier, earlier_areas = _earlier_areas(kernel, lanes, len(value))
    own = b.and_(thread(kernel), kernel.config.lanes - 1)

    def own_word(area: int) -> Value:
        return b.add(b.shl(own, 2), area)

    # A word that all lanes leave alone needs no scratch word.
    used = [area for area, word in zip(areas, value, strict=True) if word != neutral]
    for area, word in zip(areas, value, strict=True):
        if area in used:
            b.store(own_word(area), word, space=operands)
    total: Words = tuple(b.load(b.add(address, 4 * i), space=space) for i in range(len(value)))
    for lane in range(lanes):
        for area, word in zip(earlier_areas, total, strict=True):
            b.store(Imm(area + 4 * lane), word, space=earlier)
        one = tuple(
            b.load(Imm(area + 4 * lane), space=operands) if area in used else neutral
            for area in areas
        )
        total = form.combine(b, total, one)
    for index, word in enumerate(total):
        b.store(b.add(address, 4 * index), word, space=space)
    for area in used:
        b.store(own_word(area), neutral, space=operands)
        if form.neutral:
            _set_at_start(kernel, area, neutral, operands)
    return tuple(b.load(own_word(area), space=earlier) for area in earlier_areas)


def _set_at_start(kernel: KernelLowering, area: int, neutral: Imm, space: str) -> None:
    """Stores the neutral word in each lane's scratch word before anything else."""
    lane = kernel.builder.register()
    kernel.builder.begin(
        Op("and", lane, Special.TID, Imm(kernel.config.lanes - 1)),
        Op("st", b=neutral, address=Address("lea2", lane, Imm(area)), space=space),
    )


def _earlier_areas(kernel: KernelLowering, lanes: int, words: int) -> tuple[str, list[int]]:
    """Where the running result before each lane is kept, for those that read their old value.

    Each atomic has a space of its own: where nothing is read, the stores are dropped.
    """
    name = f"earlier {kernel.builder.label('old')}"
    areas = [kernel.variables.scratch(f"{name} {i}", lanes) for i in range(words)]
    return name, areas
