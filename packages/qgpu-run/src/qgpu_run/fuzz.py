"""Random programs through the weights by teacher forcing, many short launches to a batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from qgpu_isa.random_programs import random_launch

from qgpu_run.check import describe_difference, describe_words
from qgpu_run.engines.engine import Engine, RowScorer
from qgpu_run.verify import TeacherStream, VerifyReport, compare, teacher_stream, verify_launch


@dataclass
class FuzzReport:
    """What random programs showed so far.

    Attributes:
        machine: name of the machine.
        engine: what computed the choices.
        first: number of the first program.
        programs: how many were run.
        exact: how many had every token and every word of memory right.
        tokens, setup_tokens: decoded and fed tokens.
        min_margin: smallest distance of a winner's logit from the second, in bf16 steps.
        seconds: of the whole, building the programs included.
        failures: text on each program that was not exact, by number.
    """

    machine: str
    engine: str
    first: int
    programs: int = 0
    exact: int = 0
    tokens: int = 0
    setup_tokens: int = 0
    min_margin: float = float("inf")
    seconds: float = 0.0
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, number: int, stream: TeacherStream, report: VerifyReport) -> None:
        """Counts one program."""
        self.programs += 1
        self.tokens += report.positions
        self.setup_tokens += report.setup_tokens
        self.min_margin = min(self.min_margin, report.min_margin)
        if report.exact:
            self.exact += 1
        elif report.first is not None:
            self.failures[number] = describe_difference(stream.launch, report.first)
        else:
            self.failures[number] = describe_words(report.words)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return asdict(self) | {"min_margin": self.min_margin if self.programs else None}


def fuzz(
    engine: Engine, first: int, programs: int, *, batch: int, max_tokens: int
) -> Iterator[FuzzReport]:
    """Verifies programs `first` to `first + programs - 1`; gives the report after each batch.

    Args:
        engine: transformers takes a batch as the rows of one forward pass, sparse on all cores.
        first, programs: which programs.
        batch: programs between two reports.
        max_tokens: most tokens that a program decodes.
    """
    report = FuzzReport(engine.config.name, engine.name, first)
    started = time.monotonic()
    for low in range(first, first + programs, batch):
        numbers = range(low, min(low + batch, first + programs))
        streams = [
            teacher_stream(random_launch(engine.config, number, max_tokens=max_tokens))
            for number in numbers
        ]
        for number, stream, found in zip(numbers, streams, _verify(engine, streams), strict=True):
            report.add(number, stream, found)
        report.seconds = time.monotonic() - started
        yield report


def _verify(engine: Engine, streams: list[TeacherStream]) -> list[VerifyReport]:
    if not isinstance(engine, RowScorer):
        return [verify_launch(stream.launch, engine) for stream in streams]
    rows = engine.score_rows([stream.tokens for stream in streams])
    return [
        compare(stream, [row[p] for p in stream.positions], engine.read_memory(index))
        for index, (stream, row) in enumerate(zip(streams, rows, strict=True))
    ]
