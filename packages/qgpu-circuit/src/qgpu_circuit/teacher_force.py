"""Feeding a launch's reference trace to something that answers with the next token."""

from __future__ import annotations

from collections.abc import Callable

from qgpu_isa import Launch, Token, launch_tokens, run_launch
from qgpu_isa.interpreter.machine import cta_tokens


def first_difference(launch: Launch, step: Callable[[Token], Token | None]) -> str | None:
    """Teacher-forces the interpreter's trace.

    Returns:
        what differed first, None if every decoded token is the one `step` answers.
    """
    _, records = run_launch(launch)
    for token in launch_tokens(launch):
        step(token)
    position = 0
    for cta in range(launch.ctas):
        answer: Token | None = None
        for token in cta_tokens(launch.config, launch.threads, cta):
            answer = step(token)
        while position < len(records) and records[position].cta == cta:
            wanted = records[position].token
            if answer != wanted:
                return f"token {position}: expected {wanted}, got {answer} ({records[position]})"
            answer = step(wanted)
            position += 1
    return None
