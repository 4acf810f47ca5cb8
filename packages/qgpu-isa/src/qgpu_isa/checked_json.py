"""JSON that others wrote, read value by value; what is wrong in it is one line of text.

Python takes much for the same that a file should not mix up: 768.0 for 768, true for 1, "false"
for true. `Fields` takes nothing for anything else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from qgpu_isa.errors import QgpuError

MOST_DEPTH = 64
"""Objects in objects; what walks over them recurs."""

MOST = 2**40
"""Whole numbers beyond this are no sizes."""


def load_object(path: Path, error: type[QgpuError], missing: str = "") -> dict[str, Any]:
    """The JSON object in a file.

    Args:
        path: the file.
        error: what is raised.
        missing: the message where there is no such file.

    Raises:
        QgpuError: `error`; the file cannot be read, or holds something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise error(missing or f"{path} is missing") from None
    except RecursionError:
        raise error(f"cannot read {path}: it is nested too deeply") from None
    except OSError as reason:
        raise error(f"cannot read {path}: {reason.strerror or reason}") from None
    except ValueError as reason:
        raise error(f"cannot read {path}: it is no JSON: {_first_line(reason)}") from None
    if not isinstance(data, dict):
        raise error(f"{path} holds no JSON object")
    if _deeper_than(data, MOST_DEPTH):
        raise error(f"cannot read {path}: it is nested too deeply")
    return data


def shown(value: object) -> str:
    """A JSON value for a message."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Fields:
    """The values of an object, by name.

    Args:
        data: the object.
        where: where it is, for messages.
        error: what is raised for a value that is missing or wrong.
    """

    def __init__(self, data: dict[str, Any], where: str, error: type[QgpuError]) -> None:
        self.data, self.where, self.error = data, where, error

    def __contains__(self, name: str) -> bool:
        return self.data.get(name) is not None

    def fail(self, name: str, wanted: str) -> NoReturn:
        """Raises: a value is missing, or not what it must be."""
        if name not in self.data:
            raise self.error(f"{self.where} has no {name}, which must be {wanted}")
        raise self.error(f"{self.where}: {name} is {shown(self.data[name])}; it must be {wanted}")

    def integer(
        self, name: str, least: int = 1, most: int = MOST, default: int | None = None
    ) -> int:
        """A whole number."""
        value = self.data.get(name) if default is None else self.data.get(name, default)
        if type(value) is not int or not least <= value <= most:
            upper = "on" if most == MOST else f"to {most}"
            self.fail(name, f"a whole number from {least} {upper}")
        return value

    def number(self, name: str, above: float, most: float = math.inf) -> float:
        """A finite number above a bound, and at most another."""
        value = self.data.get(name)
        number = math.nan
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
            number = float(value)
        if not above < number <= most:
            upper = "" if most == math.inf else f" and at most {most:g}"
            self.fail(name, f"a number above {above:g}{upper}")
        return number

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.data.get(name, default)
        if not isinstance(value, bool):
            self.fail(name, "true or false")
        return value

    def text(self, name: str, choices: Sequence[str] = ()) -> str:
        """A string, of some if they are given."""
        value = self.data.get(name)
        if not isinstance(value, str) or (choices and value not in choices):
            listed = ", ".join(f'"{choice}"' for choice in choices)
            self.fail(name, (f"one of {listed}" if choices else "a string"))
        return value

    def array(self, name: str) -> list[Any]:
        """A list, of whatever."""
        value = self.data.get(name)
        if not isinstance(value, list):
            self.fail(name, "a list")
        return value

    def integers(self, name: str, least: int = 0) -> list[int]:
        """A list of whole numbers."""
        values = self.array(name)
        if not all(type(value) is int and least <= value <= MOST for value in values):
            self.fail(name, f"a list of whole numbers from {least} on")
        return values

    def inner(self, name: str) -> Fields:
        """The values of an object in this one."""
        value = self.data.get(name)
        if not isinstance(value, dict):
            self.fail(name, "an object")
        return Fields(value, f"{self.where}: {name}", self.error)


def _deeper_than(data: Any, most: int) -> bool:
    level = [data]
    for _ in range(most):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
