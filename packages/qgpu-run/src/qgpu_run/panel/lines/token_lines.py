"""The log of decoded tokens."""

from __future__ import annotations

import math

from qgpu_isa.vocabulary import TokenClass

from qgpu_run.panel.describe_token import meaning, token_name
from qgpu_run.panel.lines.line import Line, Role
from qgpu_run.panel.recording import Recording

ROLES: dict[TokenClass, Role] = {
    TokenClass.EXEC: "run",
    TokenClass.STOP: "wait",
    TokenClass.FAULT: "bad",
    TokenClass.RAW: "dim",
    TokenClass.END: "label",
}
NAME, MARGIN = 22, 6


def token_line(recording: Recording, index: int, width: int) -> Line:
    """The line of a token, by its index; the last one read is marked."""
    note = recording.notes[index]
    last = index == recording.position - 1
    role: Role = "bad" if note.token is None else ROLES.get(note.token.cls, "")
    margin = recording.tokens[index].margin
    tail = f"{margin:>{MARGIN}.0f}" if math.isfinite(margin) else f"{'-':>{MARGIN}}"
    room = max(0, width - 1 - 7 - MARGIN)
    slot = f"{note.slot.name} " if note.slot is not None else ""
    said = f"{slot}{meaning(note, recording.info.config)}"
    name = f"{token_name(note)}"
    body = f"{name:<{NAME}} {said}" if room >= NAME + 30 else said
    return [
        ("▶" if last else " ", "run"),
        (f"{index + 1:>6} ", "dim"),
        (f"{body[:room]:<{room}}", role),
        (tail, "dim"),
    ]
