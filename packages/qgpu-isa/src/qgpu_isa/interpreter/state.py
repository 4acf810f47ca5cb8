"""The machine's state as plain lists of integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.program import Status


class PassFlag(IntEnum):
    """What a pass as a whole is doing.

    READY passes can run (they have not started, run, or wait for their warp). CTA0 and CTA1 wait
    for a CTA barrier of that phase; when the phase has moved on, they are ready again.
    """

    READY = 0
    CTA0 = 1
    CTA1 = 2
    EXITED = 3


@dataclass
class AccessLog:
    """Words of memory that were accessed since the log was set.

    Attributes:
        reads: words that were loaded before they were stored to.
        writes: words that were stored to.
    """

    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)

    def load(self, address: int) -> None:
        """Takes the load of a word."""
        if address not in self.writes:
            self.reads.add(address)


@dataclass
class State:
    """Everything the machine remembers.

    Attributes:
        registers: [pass][register][lane] words.
        predicates: [pass][predicate] masks over the lanes.
        memory: words of the unified address space.
        pcs: [pass][lane] next block; that of a lane that has exited is the last block there is.
        statuses: [pass][lane] status.
        masks: per pass, the lanes that it ran last; at first those that have a thread.
        flags: per pass.
        stopped_at: per pass, the smallest block at which a lane waited when the pass last stopped.
        log: takes every access to memory, where one is wanted.
    """

    config: MachineConfig
    ctaid: int = 0
    log: AccessLog | None = None
    registers: list[list[list[int]]] = field(init=False)
    predicates: list[list[int]] = field(init=False)
    memory: list[int] = field(init=False)
    pcs: list[list[int]] = field(init=False)
    statuses: list[list[Status]] = field(init=False)
    masks: list[int] = field(init=False)
    flags: list[PassFlag] = field(init=False)
    stopped_at: list[int] = field(init=False)

    def __post_init__(self) -> None:
        c = self.config
        self.registers = [[[0] * c.lanes for _ in range(c.registers)] for _ in range(c.passes)]
        self.predicates = [[0] * c.predicates for _ in range(c.passes)]
        self.memory = [0] * c.memory_words
        self.pcs = [[0] * c.lanes for _ in range(c.passes)]
        self.statuses = [[Status.EXIT] * c.lanes for _ in range(c.passes)]
        self.masks = [0] * c.passes
        self.flags = [PassFlag.EXITED] * c.passes
        self.stopped_at = [0] * c.passes
