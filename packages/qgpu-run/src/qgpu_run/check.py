"""Token for token against the reference interpreter; the first difference is explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from qgpu_isa.errors import TokenError
from qgpu_isa.interpreter import Launch, Machine, StepRecord
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.vocabulary import vocabulary

from qgpu_run.engines.engine import Engine
from qgpu_run.errors import KernelFaultError
from qgpu_run.launch import MAX_TOKENS, LaunchTrace, OnToken, run_on_engine

CONTEXT_TOKENS = 4
"""Agreeing tokens shown before a difference."""

SHOWN_WORDS = 8
"""Differing memory words listed in a report."""


@dataclass(frozen=True)
class Difference:
    """The first token where engine and interpreter part.

    Attributes:
        index: how many decoded tokens of the launch agree.
        expected: what the interpreter wrote, with the execution it belongs to; None if it had
            ended.
        found: the engine's token, in words.
        before: the agreeing tokens right before, in words.
    """

    index: int
    expected: StepRecord | None
    found: str
    before: tuple[str, ...]


@dataclass(frozen=True)
class WordDifference:
    """A memory word that differs after the launch."""

    address: int
    expected: int
    found: int


@dataclass(frozen=True)
class CheckReport:
    """The outcome of a check.

    Attributes:
        tokens: decoded tokens that agree.
        difference: the first that does not, if any.
        words: memory words that differ at the end.
        trace: the launch, if it ran to its end.
        fault: the fault in which both ended, if they did.
    """

    tokens: int
    difference: Difference | None
    words: tuple[WordDifference, ...] = ()
    trace: LaunchTrace | None = None
    fault: str | None = None

    @property
    def exact(self) -> bool:
        """Whether all tokens and all words agree."""
        return self.difference is None and not self.words


class Mismatch(Exception):
    """Ends a launch at its first wrong token."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(difference)
        self.difference = difference


class Checker:
    """Follows a launch with the interpreter; `see` takes each decoded token.

    Raises out of `see` at the first difference, so a launch that has gone astray ends there.
    """

    def __init__(self, launch: Launch) -> None:
        self.machine = Machine(launch)
        self.seen = 0
        self._vocab = vocabulary(launch.config)
        self._cta = -1
        self._steps: Iterator[StepRecord] = iter(())
        self._recent: list[str] = []

    def see(self, cta: int, token: int) -> None:
        """Compares the next decoded token."""
        if cta != self._cta:
            self.machine.start_cta(cta)
            self._steps, self._cta = self.machine.decode(cta), cta
        step = next(self._steps, None)
        if step is None or self._vocab.encode(step.token) != token:
            found = token_text(self._vocab.config, token)
            raise Mismatch(Difference(self.seen, step, found, tuple(self._recent)))
        self.seen += 1
        self._recent = [*self._recent[1 - CONTEXT_TOKENS :], str(step.token)]


def token_text(config: MachineConfig, token: int) -> str:
    """A decoded token in words, also one that is not the machine's."""
    if token < 0:
        return f"text token {-1 - token}"
    try:
        return str(vocabulary(config).decode(token))
    except TokenError:
        return f"unknown token {token}"


def check_launch(
    launch: Launch,
    engine: Engine,
    *,
    max_tokens: int = MAX_TOKENS,
    on_token: OnToken | None = None,
    read: Callable[[], Mapping[int, int]] | None = None,
) -> CheckReport:
    """Runs a launch on an engine and compares every token, then all of memory.

    With `read`, only the words that it reads at the end are compared.

    After a fault memory holds nothing that counts, as after a fault on real hardware.

    Raises:
        ExecutionError: the launch did not end, as the interpreter's did not either.
    """
    checker = Checker(launch)
    trace = fault = None

    def see(cta: int, token: int) -> None:
        checker.see(cta, token)
        if on_token is not None:
            on_token(cta, token)

    try:
        trace = run_on_engine(launch, engine, max_tokens=max_tokens, on_token=see)
    except Mismatch as mismatch:
        return CheckReport(checker.seen, mismatch.difference)
    except KernelFaultError as error:
        fault = str(error)
    if fault is not None:
        return CheckReport(checker.seen, None, fault=fault)
    expected = checker.machine.state.memory
    if read is None:
        words = memory_differences(expected, engine.read_memory())
    else:
        found = read()
        words = memory_differences(expected, [found.get(a, w) for a, w in enumerate(expected)])
    return CheckReport(checker.seen, None, words, trace)


def memory_differences(expected: Sequence[int], found: Sequence[int]) -> tuple[WordDifference, ...]:
    """The words that differ."""
    pairs = enumerate(zip(expected, found, strict=True))
    return tuple(WordDifference(a, e, f) for a, (e, f) in pairs if e != f)


def describe_difference(launch: Launch, difference: Difference) -> str:
    """A difference as text: tokens, execution, instruction, source."""
    step = difference.expected
    lines = [f"token {difference.index} differs"]
    if step is None:
        lines.append("  expected  nothing: the launch had ended")
    else:
        lines.append(f"  expected  {step.token}")
    lines.append(f"  found     {difference.found}")
    if difference.before:
        lines.append(f"  after     {' '.join(difference.before)}")
    if step is not None:
        lines.append(
            f"  in        block {step.block}, pass {step.pass_}, "
            f"lanes {step.mask:0{launch.config.lanes}b}, CTA {step.cta}"
        )
        block = launch.image.blocks[step.block]
        if step.slot is not None and step.slot in block.slots:
            code = block.slots[step.slot]
            target = f"{'p' if code.dst.name == 'PRED' else 'r'}{code.dst_index}"
            lines.append(f"  result    slot {step.slot.name}: {code.name} -> {target}")
        lines += [f"  source    {line}" for line in block.source]
    return "\n".join(lines)


def describe_words(words: Sequence[WordDifference]) -> str:
    """Differing memory words as text."""
    lines = [f"{len(words)} memory words differ"]
    for word in words[:SHOWN_WORDS]:
        lines.append(
            f"  word {word.address}: expected 0x{word.expected:08x}, found 0x{word.found:08x}"
        )
    if len(words) > SHOWN_WORDS:
        lines.append(f"  and {len(words) - SHOWN_WORDS} more")
    return "\n".join(lines)
