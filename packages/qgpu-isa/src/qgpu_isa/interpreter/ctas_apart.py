"""CTAs that all start from the memory the host wrote, and what one would have had of another.

Where no CTA reads a word that an earlier one wrote, each does what it does when they run one after
the other: by induction, since what it reads before it writes it is what the host wrote. Where no
two write the same word either, the words that changed make up the memory at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from qgpu_isa.errors import ExecutionError
from qgpu_isa.interpreter.machine import Launch, Machine, StepRecord
from qgpu_isa.interpreter.state import AccessLog
from qgpu_isa.vocabulary import TokenClass


@dataclass(frozen=True)
class CtaRun:
    """One CTA, from the memory the host wrote.

    Attributes:
        steps: the decoded tokens, up to and including END or FAULT.
        reads: global words that it read before it wrote them.
        writes: global words that it wrote, and what they hold at its end.
    """

    steps: tuple[StepRecord, ...]
    reads: frozenset[int]
    writes: dict[int, int]

    @property
    def faulted(self) -> bool:
        """Whether it ended in a fault."""
        return self.steps[-1].token.cls is TokenClass.FAULT


@dataclass(frozen=True)
class Dependence:
    """A word for which the order of two CTAs matters.

    Attributes:
        address: word address.
        first, second: the CTAs, in the order of the launch; `first` wrote the word.
        stale: whether `second` reads it; if not, it writes it.
    """

    address: int
    first: int
    second: int
    stale: bool


def run_ctas_apart(launch: Launch, max_tokens: int = 1_000_000) -> list[CtaRun]:
    """Runs every CTA on a reference machine of its own; those behind one that faults are left out.

    Raises:
        ExecutionError: more than `max_tokens` tokens were decoded in all.
    """
    runs: list[CtaRun] = []
    left = max_tokens
    limit = launch.config.global_words
    for cta in range(launch.ctas):
        machine = Machine(launch)
        log = machine.state.log = AccessLog()
        machine.start_cta(cta)
        steps = []
        for step in machine.decode(cta):
            steps.append(step)
            if len(steps) > left:
                raise ExecutionError(
                    f"the kernel wrote more than {max_tokens} tokens; "
                    "raise --max-tokens if it is not an endless loop"
                )
        left -= len(steps)
        reads = frozenset(a for a in log.reads if a < limit)
        memory = machine.state.memory
        runs.append(CtaRun(tuple(steps), reads, {a: memory[a] for a in log.writes if a < limit}))
        if runs[-1].faulted:
            break
    return runs


def dependences(runs: Sequence[CtaRun], private: Collection[int] = ()) -> list[Dependence]:
    """Why CTAs cannot run apart, at most one reason for each word; empty if they can.

    Args:
        runs: of the CTAs in the order of the launch.
        private: words that every CTA writes before it reads them and nobody reads afterwards.
    """
    found: dict[int, Dependence] = {}
    wrote: dict[int, int] = {}
    for cta, run in enumerate(runs):
        for stale, words in ((True, run.reads), (False, run.writes)):
            for address in words:
                if address in wrote and address not in private:
                    found.setdefault(address, Dependence(address, wrote[address], cta, stale))
        for address in run.writes:
            wrote.setdefault(address, cta)
    return [found[address] for address in sorted(found)]
