"""The interpreter's whole trace, teacher-forced through the engine at prefill speed.

At every position where the machine writes a token, the engine's greedy choice must be the
interpreter's. Since the tokens before are those the engine would have written itself, agreement
at every position means that decoding step by step gives the same trace.
"""

from __future__ import annotations

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
from qgpu_run.engines.engine import Engine
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


def verify_launch(launch: Launch, engine: Engine, *, max_tokens: int = MAX_TOKENS) -> VerifyReport:
    """Compares the engine's choice at every decoded position of the interpreter's trace.

    Raises:
        RequestError: the engine is another machine than the launch's.
        ExecutionError: the interpreter wrote more than `max_tokens` tokens.
    """
    check_machine(launch, engine)
    machine, steps = run_launch(launch, max_tokens)
    vocab = vocabulary(launch.config)
    per_cta: dict[int, list[StepRecord]] = {}
    for step in steps:
        per_cta.setdefault(step.cta, []).append(step)
    engine.reset()
    first: Difference | None = None
    differences = positions = written = 0
    margin = float("inf")
    carry: list[int] = []
    wanted: list[int] = []
    for cta, records in per_cta.items():
        setup = setup_tokens(launch, cta)
        written += len(setup)
        setup = carry + setup
        wanted = [vocab.encode(step.token) for step in records]
        stream = setup + wanted[:-1]
        choices = engine.score(stream, len(setup) - 1)
        for index, (choice, token) in enumerate(zip(choices, wanted, strict=True)):
            margin = min(margin, choice.margin)
            if choice.token == token:
                continue
            differences += 1
            if first is None:
                before = records[max(0, index - CONTEXT_TOKENS) : index]
                first = Difference(
                    positions + index,
                    records[index],
                    token_text(launch.config, choice.token),
                    tuple(str(step.token) for step in before),
                )
        positions += len(records)
        carry = wanted[-1:]
    memory = engine.read_memory()
    fault = None
    if steps[-1].token.cls is TokenClass.FAULT:
        fault = describe_fault(launch, steps[-1].cta, wanted)
    return VerifyReport(
        positions,
        differences,
        first,
        memory_differences(machine.state.memory, memory) if fault is None else (),
        margin,
        written,
        tuple(memory),
        fault,
    )
