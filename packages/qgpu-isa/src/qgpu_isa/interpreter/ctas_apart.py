"""CTAs that all start from the memory the host wrote, and what one would have had of another.

Where no CTA reads a word that an earlier one wrote, each does what it does when they run one after
the other: by induction, since what it reads before it writes it is what the host wrote. Where no
two write the same word either, the words that changed make up the memory at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from qgpu_isa.errors import ExecutionError
from qgpu_isa.interpreter.machine import Launch, Machine, StepRecord
from qgpu_isa.interpreter.state import AccessLog
from qgpu_isa.vocabulary import TokenClass

Effects = TypeVar("Effects", bound="CtaEffects")


@dataclass(frozen=True)
class CtaEffects:
    """What one CTA came to, from the memory the host wrote.

    Attributes:
        tokens: how many it decoded, up to and including END or FAULT.
        last: what the last of them is; neither END nor FAULT if it was stopped before its end.
        reads: global words that it read before it wrote them.
        writes: global words that it wrote, and what they hold at its end.
    """

    tokens: int
    last: TokenClass
    reads: frozenset[int]
    writes: dict[int, int]

    @property
    def faulted(self) -> bool:
        """Whether it ended in a fault."""
        return self.last is TokenClass.FAULT

    @property
    def ended(self) -> bool:
        """Whether it ended at all."""
        return self.last in (TokenClass.END, TokenClass.FAULT)


@dataclass(frozen=True)
class CtaRun(CtaEffects):
    """One CTA and its decoded tokens, up to and including END or FAULT."""

    steps: tuple[StepRecord, ...]

    @property
    def effects(self) -> CtaEffects:
        """The run without its tokens."""
        return CtaEffects(self.tokens, self.last, self.reads, self.writes)


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
    return up_to_fault(run_some_apart(launch, range(launch.ctas), max_tokens), max_tokens)


def run_some_apart(launch: Launch, ctas: Iterable[int], max_tokens: int) -> dict[int, CtaRun]:
    """Runs some CTAs of a launch, in ascending order, until one faults or has not ended.

    That one is the last: all of them together are stopped behind `max_tokens` tokens.
    """
    runs: dict[int, CtaRun] = {}
    left = max_tokens
    for cta in ctas:
        run = runs[cta] = _run_apart(launch, cta, left)
        left -= run.tokens
        if run.faulted or not run.ended:
            break
    return runs


def up_to_fault(runs: Mapping[int, Effects], max_tokens: int) -> list[Effects]:
    """What the CTAs do that run one after the other: all of them, or those up to a fault.

    Args:
        runs: by CTA; from one that faulted or has not ended on, some may be missing.

    Raises:
        ExecutionError: they decode more than `max_tokens` tokens in all.
    """
    found: list[Effects] = []
    tokens = 0
    for cta in sorted(runs):
        run = runs[cta]
        found.append(run)
        tokens += run.tokens
        if not run.ended or tokens > max_tokens:
            raise ExecutionError(
                f"the kernel wrote more than {max_tokens} tokens; "
                "raise --max-tokens if it is not an endless loop"
            )
        if run.faulted:
            break
    return found


def _run_apart(launch: Launch, cta: int, max_tokens: int) -> CtaRun:
    """Runs one CTA; one that goes on is stopped behind `max_tokens` tokens, at least one."""
    machine = Machine(launch)
    log = machine.state.log = AccessLog()
    machine.start_cta(cta)
    steps = tuple(islice(machine.decode(cta), max(1, max_tokens)))
    limit = launch.config.global_words
    memory = machine.state.memory
    reads = frozenset(a for a in log.reads if a < limit)
    writes = {a: memory[a] for a in log.writes if a < limit}
    return CtaRun(len(steps), steps[-1].token.cls, reads, writes, steps)


def dependences(runs: Sequence[CtaEffects], private: Collection[int] = ()) -> list[Dependence]:
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
