"""Values as Python objects, and as the text that goes back to a model."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu_run.expression.types import ValueType

Value = int | bool | list["Value"]
"""A number, a truth value, or lists of them."""


def to_value(numbers: Sequence[int], type_: ValueType) -> Value:
    """The value that numbers in memory are."""
    items: list[Value] = [bool(n) if type_.truth else int(n) for n in numbers]
    if type_.is_scalar:
        return items[0]
    if len(type_.shape) == 1:
        return items
    cols = type_.shape[1]
    return [items[first : first + cols] for first in range(0, len(items), cols)]


def format_value(value: Value) -> str:
    """As it is written in an expression."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(format_value, value))}]"
    return str(value)
