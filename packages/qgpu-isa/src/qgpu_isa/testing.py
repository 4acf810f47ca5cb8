"""Hypothesis strategies for the machine; needs the extra `testing`.

`random_launch` is the plain generator behind long comparisons and needs no extra
(`qgpu_isa.random_programs`).
"""

from __future__ import annotations

import random

from hypothesis import strategies as st

from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import PROFILES, WORD_BITS, WORD_MASK, MachineConfig
from qgpu_isa.program import (
    FORWARDS,
    Block,
    Branch,
    CondSource,
    DstKind,
    Operand,
    Predicate,
    ProgramImage,
    SlotCode,
    Source,
    Status,
)
from qgpu_isa.random_programs import (
    random_image,
    random_launch,
    random_memory,
    random_straight_image,
)
from qgpu_isa.random_slots import CORNER_WORDS

__all__ = [
    "blocks",
    "branches",
    "configs",
    "images",
    "launches",
    "operands",
    "programs",
    "random_launch",
    "slot_codes",
    "sources",
    "straight_programs",
    "words",
]


def words() -> st.SearchStrategy[int]:
    """32-bit words, half of them corners and their neighbours."""
    near_powers = st.builds(
        lambda bit, delta: ((1 << bit) + delta) & WORD_MASK,
        st.integers(0, WORD_BITS),
        st.integers(-1, 1),
    )
    return st.one_of(st.sampled_from(CORNER_WORDS), near_powers, st.integers(0, WORD_MASK))


def configs() -> st.SearchStrategy[MachineConfig]:
    """The named machine profiles."""
    return st.sampled_from(list(PROFILES.values()))


def operands(config: MachineConfig, slot: Slot) -> st.SearchStrategy[Operand]:
    """Legal operands of a slot, also with register numbers that mean nothing."""
    plain = [source for source in Source if source < Source.FWD0]
    return st.builds(
        Operand,
        st.sampled_from(plain + list(FORWARDS[slot])),
        st.integers(0, config.registers - 1),
    )


def slot_codes(config: MachineConfig, slot: Slot) -> st.SearchStrategy[SlotCode]:
    """Every legal content of a slot, also with fields that mean nothing."""
    names = [i.name for i in INSTRUCTIONS if slot in i.slots]
    return st.sampled_from(names).flatmap(lambda name: _instruction(config, slot, name))


def _instruction(config: MachineConfig, slot: Slot, name: str) -> st.SearchStrategy[SlotCode]:
    limits = {DstKind.NONE: config.registers, DstKind.REG: config.registers}
    if INSTRUCTIONS[name].is_compare:
        limits[DstKind.PRED] = config.predicates
    destinations = st.sampled_from(list(limits)).flatmap(
        lambda kind: st.tuples(st.just(kind), st.integers(0, limits[kind] - 1))
    )
    predicates = st.builds(
        Predicate, st.none() | st.integers(0, config.predicates - 1), st.booleans()
    )
    return st.builds(
        lambda a, b, imm, dst, pred: SlotCode(name, a, b, imm, dst[0], dst[1], pred),
        operands(config, slot),
        operands(config, slot),
        words(),
        destinations,
        predicates,
    )


def branches(config: MachineConfig, blocks: int) -> st.SearchStrategy[Branch]:
    """Every legal branch in a program of `blocks` blocks; most of them make endless programs."""
    return st.builds(
        Branch,
        cond=st.sampled_from(CondSource),
        pred=st.integers(0, config.predicates - 1),
        negate=st.booleans(),
        taken=st.integers(0, blocks - 1),
        taken_status=st.sampled_from(Status),
        next=st.integers(0, blocks - 1),
        next_status=st.sampled_from(Status),
        trap=st.booleans(),
    )


def sources() -> st.SearchStrategy[tuple[str, ...]]:
    """Notes of where a block came from, any text."""
    return st.lists(st.text(max_size=12), max_size=3).map(tuple)


def blocks(config: MachineConfig, count: int = 1) -> st.SearchStrategy[Block]:
    """Every legal block of a program of `count` blocks."""
    slots = st.fixed_dictionaries({}, optional={s: slot_codes(config, s) for s in Slot})
    legal = slots.map(
        lambda d: {s: d[s] for s in Slot if s in d and (s is not Slot.MEM or Slot.A0 in d)}
    )
    return st.builds(Block, legal, branches(config, count), sources())


def images(config: MachineConfig, max_blocks: int = 4) -> st.SearchStrategy[ProgramImage]:
    """Legal images of any content, for encoders and printers; most of them never end."""
    return st.integers(1, max_blocks).flatmap(
        lambda count: st.builds(
            lambda content, name: ProgramImage(config, tuple(content), name),
            st.lists(blocks(config, count), min_size=count, max_size=count),
            st.text(max_size=8),
        )
    )


def programs(config: MachineConfig, max_blocks: int = 8) -> st.SearchStrategy[ProgramImage]:
    """Structured programs with loops, divergence and barriers; each of them ends.

    A lane runs at most `MAX_TRIPS` times the program's blocks, and blocks that lost a memory bank
    again, at most once a lane of its pass.
    """
    return st.builds(
        lambda seed, count: random_image(config, random.Random(seed), count),
        _seeds(),
        st.integers(1, max_blocks),
    )


def straight_programs(
    config: MachineConfig, max_blocks: int = 4
) -> st.SearchStrategy[ProgramImage]:
    """Programs whose blocks run one after the other."""
    return st.builds(
        lambda seed, count: random_straight_image(config, random.Random(seed), count),
        _seeds(),
        st.integers(1, max_blocks),
    )


def launches(
    config: MachineConfig, max_blocks: int = 8, max_ctas: int = 2
) -> st.SearchStrategy[Launch]:
    """Launches of `programs`."""
    return st.builds(
        Launch,
        programs(config, max_blocks),
        _seeds().map(lambda seed: random_memory(config, random.Random(seed))),
        st.integers(1, config.threads),
        st.integers(1, max_ctas),
    )


def _seeds() -> st.SearchStrategy[int]:
    return st.integers(0, (1 << 32) - 1)
