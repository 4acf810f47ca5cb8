"""Calls and their results as words, for both kinds of screen."""

from __future__ import annotations

from typing import Any

from qgpu_run.chat.conversation import Answered
from qgpu_run.chat.tools import CallRecord

EXACT = {True: "exact", False: "NOT EXACT", None: "not compared"}

STOPPED = {
    "cancelled": "stopped",
    "calls": "stopped: the model called its GPU too often for one message",
    "tokens": "stopped: the reply is too long",
}


def clean(text: str) -> str:
    """Text without what would drive a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def call_numbers(record: CallRecord) -> str:
    """What a call took."""
    count = len(record.launches)
    if not count:
        return f"nothing ran, {record.seconds:.2f} s"
    launches = "1 launch" if count == 1 else f"{count} launches"
    return f"{launches}, {record.tokens} GPU tokens, {EXACT[record.exact]}, {record.seconds:.2f} s"


def answer_numbers(answer: Answered) -> str:
    """What a reply took, and why it ended."""
    numbers = f"{answer.tokens} tokens, {answer.seconds:.1f} s"
    return f"{STOPPED[answer.stopped]}  ({numbers})" if answer.stopped else numbers


def response_line(response: str, failed: bool) -> str:
    """What went back to the model."""
    return response if failed else f"= {response}"


def message_calls(message: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    """Names and arguments of the calls in an assistant's message."""
    functions = [call["function"] for call in message.get("tool_calls", ())]
    return [(function["name"], dict(function["arguments"])) for function in functions]
