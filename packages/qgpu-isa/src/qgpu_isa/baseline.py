"""The yardstick for token counts: the cost of a kernel under a naive lowering.

The first design of the machine lowered a kernel instruction by instruction and sent every live
register back as plain words. That record format is frozen here, so that later formats can be
measured against a fixed number. Nothing else in the package depends on it.

**Program.** A kernel is a list of basic blocks of abstract instructions, in program order. A
guarded instruction names its predicate among its reads, and, since where the guard fails the old
value stays, its destinations too. Predicates are registers.

**Cutting.** A basic block is cut into *steps* of consecutive instructions. A step ends behind its
fourth instruction, behind a load, store, atomic, branch or barrier, and at the end of the basic
block. A basic block without instructions has no steps.

**Live-outs.** A register is a live-out of a step if the step writes it and it is live behind the
step: on some path of the control-flow graph from there, a later step (or another run of this one)
reads it before any writes it. Each live-out counts once a step, however often it is written.

**Cost.** Threads run in groups of 4 lanes of one CTA. Each run of a step by a group costs 1 token
and 8 tokens per live-out of the step. Each word that a lane stores costs 3 tokens; an atomic stores
one word, a store of two words two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

STEP_INSTRUCTIONS = 4
GROUP_LANES = 4
STEP_TOKENS = 1
LIVE_OUT_TOKENS = 8
STORED_WORD_TOKENS = 3


class OpKind(StrEnum):
    """What a baseline instruction is; all but ALU end the step they stand in."""

    ALU = "alu"
    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    BRANCH = "branch"
    BARRIER = "barrier"


@dataclass(frozen=True)
class BaselineOp:
    """An instruction as far as the baseline cares; a register is any name."""

    kind: OpKind
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BaselineBlock:
    """A basic block and the indices of the basic blocks that may follow it."""

    ops: tuple[BaselineOp, ...]
    successors: tuple[int, ...] = ()


@dataclass(frozen=True)
class GroupRun:
    """What one group of 4 lanes did.

    Attributes:
        executions: how often the group ran each basic block, with any of its lanes active.
        stored_words: words stored by its lanes, all together.
    """

    executions: tuple[int, ...]
    stored_words: int = 0


@dataclass(frozen=True)
class Step:
    """Instructions that the naive lowering runs as one, and the registers it sends back."""

    block: int
    ops: tuple[BaselineOp, ...]
    live_outs: frozenset[str]

    @property
    def tokens(self) -> int:
        """Cost of one run by one group."""
        return STEP_TOKENS + LIVE_OUT_TOKENS * len(self.live_outs)


def baseline_tokens(blocks: Sequence[BaselineBlock], runs: Sequence[GroupRun]) -> int:
    """Tokens of a launch under the naive lowering: see the module's definition.

    Args:
        blocks: the kernel's basic blocks.
        runs: one entry per group of 4 lanes, of all CTAs.

    Raises:
        ValueError: a run counts other blocks than the kernel has, or an edge leads nowhere.
    """
    cost = [0] * len(blocks)
    for step in baseline_steps(blocks):
        cost[step.block] += step.tokens
    total = 0
    for run in runs:
        total += STORED_WORD_TOKENS * run.stored_words
        total += sum(n * tokens for n, tokens in zip(run.executions, cost, strict=True))
    return total


def baseline_steps(blocks: Sequence[BaselineBlock]) -> list[Step]:
    """The steps of all basic blocks, in program order.

    Raises:
        ValueError: an edge leads to a block that does not exist.
    """
    live_in = _live_at_entry(blocks)
    steps: list[Step] = []
    for index, block in enumerate(blocks):
        live = {register for s in block.successors for register in live_in[s]}
        backwards: list[Step] = []
        for ops in reversed(_cut(block.ops)):
            written = {register for op in ops for register in op.writes}
            backwards.append(Step(index, ops, frozenset(written & live)))
            live = _live_before(ops, live)
        steps += reversed(backwards)
    return steps


def group_runs(
    threads: Sequence[Sequence[int]], stored_words: Sequence[int]
) -> tuple[GroupRun, ...]:
    """The runs of one CTA's groups from counts per thread.

    A group runs a block as often as the one of its lanes that runs it most: lanes that meet again
    at the first chance, the best that any machine in lockstep can do.

    Args:
        threads: per thread of the CTA, in order, how often it ran each basic block.
        stored_words: per thread, the words it stored.
    """
    groups = []
    for first in range(0, len(threads), GROUP_LANES):
        lanes = threads[first : first + GROUP_LANES]
        executions = tuple(max(counts) for counts in zip(*lanes, strict=True))
        groups.append(GroupRun(executions, sum(stored_words[first : first + GROUP_LANES])))
    return tuple(groups)


def _cut(ops: tuple[BaselineOp, ...]) -> list[tuple[BaselineOp, ...]]:
    steps: list[tuple[BaselineOp, ...]] = []
    start = 0
    for end, op in enumerate(ops, start=1):
        if end - start == STEP_INSTRUCTIONS or op.kind is not OpKind.ALU or end == len(ops):
            steps.append(ops[start:end])
            start = end
    return steps


def _live_before(ops: tuple[BaselineOp, ...], live: set[str]) -> set[str]:
    live = set(live)
    for op in reversed(ops):
        live -= set(op.writes)
        live |= set(op.reads)
    return live


def _live_at_entry(blocks: Sequence[BaselineBlock]) -> list[set[str]]:
    for index, block in enumerate(blocks):
        for successor in block.successors:
            if not 0 <= successor < len(blocks):
                raise ValueError(f"block {index} is followed by {successor}, which is no block")
    live_in: list[set[str]] = [set() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for index in reversed(range(len(blocks))):
            block = blocks[index]
            after = {register for s in block.successors for register in live_in[s]}
            before = _live_before(block.ops, after)
            if before != live_in[index]:
                live_in[index] = before
                changed = True
    return live_in
