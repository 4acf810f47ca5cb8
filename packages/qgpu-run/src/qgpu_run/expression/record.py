"""What is told of launches, while an expression is evaluated and afterwards."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from qgpu_run.expression.format_value import Value


@dataclass(frozen=True)
class LaunchRecord:
    """A launch that ended.

    Attributes:
        kernel: its name.
        operation: its name in the table of operations.
        text: the part of the expression.
        arguments: the values it read.
        value: the value it wrote.
        grid, block: CTAs, and threads of each.
        tokens: tokens that the model wrote.
        setup_tokens: tokens that the host wrote.
        margin: smallest distance of a chosen token's logit from the second, in bf16 steps.
        exact: whether all is as the reference interpreter has it; None if that was not asked.
        seconds: what it took, compilation for the machine included.
        error: what the kernel's error word says; then there is no value.
    """

    kernel: str
    operation: str
    text: str
    arguments: tuple[Value, ...]
    value: Value | None
    grid: int
    block: int
    tokens: int
    setup_tokens: int
    margin: float
    exact: bool | None
    seconds: float
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        plain = asdict(self)
        plain["arguments"] = list(self.arguments)
        plain["margin"] = self.margin if isfinite(self.margin) else None
        plain["seconds"] = round(self.seconds, 3)
        return plain


@dataclass(frozen=True)
class LaunchStarted:
    """A launch begins; `index` counts from 0 to `count`."""

    index: int
    count: int
    kernel: str
    operation: str
    text: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True)
class LaunchFinished:
    """A launch ended, with a value or in an error."""

    index: int
    count: int
    record: LaunchRecord


LaunchEvent = LaunchStarted | LaunchFinished
