"""The value of an expression and what it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qgpu_run.expression.format_value import Value, format_value
from qgpu_run.expression.record import LaunchRecord

SHOWN_CHARACTERS = 60
"""Of a part of the expression in a message."""


@dataclass(frozen=True)
class Result:
    """The value of an expression.

    Attributes:
        expression: as it was given.
        value: as Python objects.
        text: the value as text, with what divisions left over.
        notes: what divisions left over, one by one.
        launches: what ran, in order.
    """

    expression: str
    value: Value
    text: str
    notes: tuple[str, ...]
    launches: tuple[LaunchRecord, ...]

    @property
    def exact(self) -> bool | None:
        """Whether all launches were as the reference interpreter's; None if that was not asked."""
        found = [launch.exact for launch in self.launches]
        return None if not found or None in found else all(found)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "expression": self.expression,
            "value": self.value,
            "text": self.text,
            "notes": list(self.notes),
            "exact": self.exact,
            "launches": [launch.to_dict() for launch in self.launches],
        }

    def summary(self, machine: str, engine: str) -> list[str]:
        """Lines for people: each launch, and all together."""
        lines = []
        for launch in self.launches:
            value = "" if launch.value is None else f" = {shorten(format_value(launch.value))}"
            lines.append(
                f"  {shorten(launch.text)}{value}: {launch.kernel}, {launch.tokens} tokens, "
                f"{launch.setup_tokens} setup tokens, {launch.seconds:.2f} s"
            )
        tokens = sum(launch.tokens for launch in self.launches)
        count = len(self.launches)
        lines.append(
            f"{count} launch{'es' if count != 1 else ''} on machine '{machine}', {engine}: "
            f"{tokens} tokens, {sum(x.seconds for x in self.launches):.2f} s"
        )
        if self.exact is not None:
            same = "equal to" if self.exact else "DIFFERENT FROM"
            reference = "nothing compared, the engine is the reference interpreter itself"
            text = reference if engine == "interpreter" else f"{same} the reference interpreter"
            lines.append(f"check: {text}")
        return lines


def shorten(text: str) -> str:
    """A part of an expression for a message."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[: SHOWN_CHARACTERS // 2]}…{text[-SHOWN_CHARACTERS // 2 :]}"
