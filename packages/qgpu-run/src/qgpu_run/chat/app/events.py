"""What the chat tells whoever shows it; the worker's thread tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qgpu_run.chat.conversation import Answered, Called, Wrote
from qgpu_run.chat.tools import CallRecord
from qgpu_run.outcome import Outcome


@dataclass(frozen=True)
class Note:
    """A line or more for the user.

    Attributes:
        text: what to show.
        bad: whether something went wrong.
    """

    text: str
    bad: bool = False


@dataclass(frozen=True)
class Progress:
    """How far something is that takes a while; each replaces the one before."""

    text: str


@dataclass(frozen=True)
class Loaded:
    """A model is there.

    Attributes:
        note: what its makers say about it.
    """

    note: str


@dataclass(frozen=True)
class Calculated:
    """An expression of the user's was evaluated."""

    record: CallRecord


@dataclass(frozen=True)
class Launched:
    """A kernel file ran.

    Attributes:
        command: as the user wrote it.
        outcome: what came of it.
    """

    command: str
    outcome: Outcome


@dataclass(frozen=True)
class Opened:
    """Messages of a saved conversation are now the conversation's."""

    messages: tuple[dict[str, Any], ...]


ChatEvent = Note | Progress | Loaded | Calculated | Launched | Opened | Wrote | Called | Answered
