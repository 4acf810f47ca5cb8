"""The interpreter's whole trace, teacher-forced through the engine at prefill speed.

At every position where the machine writes a token, the engine's greedy choice must be the
interpreter's. Since the tokens before are those the engine would have written itself, agreement
at every position means that decoding step by step gives the same trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu_isa.interpreter import Launch, StepRecord, run_launch
from qgpu_isa.vocabulary import TokenClass, vocabulary

from qgpu_run.check import (
    CONTEXT_TOKENS,
    Difference,
    WordDifference,
    memory_differences,
    token_text,
)
from qgpu_run.engines.engine import Engine, Prediction
from qgpu_run.launch import MAX_TOKENS, check_machine, describe_fault, setup_tokens


@dataclass(frozen=True)
class VerifyReport:
    """The outcome of a verification.

    Attributes:
        positions: decoded tokens that were compared.
        differences: how many differ.
        first: the first that does.
        words: memory words that differ at the end.
        min_margin: smallest distance of a winner's logit from the second, in bf16 steps.
        setup_tokens: tokens that the host wrote.
        memory: words of memory after the launch, as the engine holds them.
        fault: the fault in which the trace ends, if it does.
    """

    positions: int
    differences: int
    first: Difference | None
    words: tuple[WordDifference, ...]
    min_margin: float
    setup_tokens: int
    memory: tuple[int, ...]
    fault: str | None

    @property
    def exact(self) -> bool:
        """Whether all positions and all words agree."""
        return self.differences == 0 and not self.words


@dataclass(frozen=True)
class TeacherStream:
    """The interpreter's trace as one stream of tokens, with what the engine has to choose.

    Attributes:
        launch: the launch.
        tokens: setup records and decoded tokens of all CTAs, without the very last token.
        records: what the interpreter wrote, in order.
        positions: for each record, the index in `tokens` after which it is to be chosen.
        memory: the words of memory at the end.
    """

    launch: Launch
    tokens: list[int]
    records: list[StepRecord]
    positions: list[int]
    memory: list[int]

    @property
    def setup_tokens(self) -> int:
        """How many tokens the host wrote."""
        return len(self.tokens) + 1 - len(self.records)


def teacher_stream(launch: Launch, max_tokens: int = MAX_TOKENS) -> TeacherStream:
    """Runs a launch on the interpreter.

    Raises:
        ExecutionError: the interpreter wrote more than `max_tokens` tokens.
    """
    machine, steps = run_launch(launch, max_tokens)
    encode = vocabulary(launch.config).encode
    tokens: list[int] = []
    positions = []
    cta = -1
    for step in steps:
        if step.cta != cta:
            cta = step.cta
            tokens += setup_tokens(launch, cta)
        positions.append(len(tokens) - 1)
        tokens.append(encode(step.token))
    return TeacherStream(launch, tokens[:-1], steps, positions, list(machine.state.memory))


def verify_launch(launch: Launch, engine: Engine, *, max_tokens: int = MAX_TOKENS) -> VerifyReport:
    """Compares the engine's choice at every decoded position of the interpreter's trace.

    Raises:
        RequestError: the engine is another machine than the launch's.
        ExecutionError: the interpreter wrote more than `max_tokens` tokens.
    """
    check_machine(launch, engine)
    stream = teacher_stream(launch, max_tokens)
    engine.reset()
    first = stream.positions[0]
    predictions = engine.score(stream.tokens, first)
    return compare(stream, [predictions[p - first] for p in stream.positions], engine.read_memory())


def compare(
    stream: TeacherStream, choices: Sequence[Prediction], memory: Sequence[int]
) -> VerifyReport:
    """The report on a stream whose choices, one a record, and memory at the end are known."""
    launch, records = stream.launch, stream.records
    encode = vocabulary(launch.config).encode
    pairs = enumerate(zip(choices, records, strict=True))
    wrong = [index for index, (choice, step) in pairs if choice.token != encode(step.token)]
    first = None
    if wrong:
        index = wrong[0]
        before = records[max(0, index - CONTEXT_TOKENS) : index]
        found = token_text(launch.config, choices[index].token)
        first = Difference(index, records[index], found, tuple(str(s.token) for s in before))
    fault = None
    if records[-1].token.cls is TokenClass.FAULT:
        cta = records[-1].cta
        fault = describe_fault(launch, cta, [encode(s.token) for s in records if s.cta == cta])
    return VerifyReport(
        len(records),
        len(wrong),
        first,
        memory_differences(stream.memory, memory) if fault is None else (),
        min(choice.margin for choice in choices),
        stream.setup_tokens,
        tuple(memory),
        fault,
    )
