"""The one error of expressions: what is wrong, and where."""

from __future__ import annotations

from typing import NamedTuple

from qgpu_isa.errors import QgpuError

from qgpu_run.expression.record import LaunchRecord

LONGEST_MESSAGE = 400
"""Characters; what a message names may be as long as the expression."""


class Span(NamedTuple):
    """A part of an expression: offsets of its first character, and behind its last."""

    start: int
    end: int

    def text(self, source: str) -> str:
        """The part on one line."""
        return " ".join(source[self.start : self.end].split())


class ExpressionError(QgpuError):
    """An expression that has no value here.

    Attributes:
        message: one line.
        source: the expression.
        span: the part it is about.
        column: where that begins, from 1.
    """

    def __init__(self, message: str, source: str, span: Span) -> None:
        if len(message) > LONGEST_MESSAGE:
            message = f"{message[: LONGEST_MESSAGE // 2]}…{message[-LONGEST_MESSAGE // 2 :]}"
        self.message, self.source, self.span = message, source, span
        self.column = span.start + 1
        super().__init__(f"{message}\n{self._marked()}")

    def _marked(self, width: int = 96) -> str:
        """The expression, or a window of it, over a line that marks the part."""
        start, end = self.span
        line = "".join(c if c.isprintable() else " " for c in self.source)
        first = max(0, min(start - width // 3, len(line) - width))
        shown = line[first : first + width]
        length = max(1, min(end, first + width) - start)
        return f"  {shown}\n  {' ' * (start - first)}{'^' * length}"


class CalculationError(ExpressionError):
    """What a kernel found: overflow, a divisor of zero, an argument outside of its domain.

    Attributes:
        launches: those that ran, the one that found it last.
    """

    exit_code = 1

    def __init__(
        self, message: str, source: str, span: Span, launches: tuple[LaunchRecord, ...]
    ) -> None:
        super().__init__(message, source, span)
        self.launches = launches
