"""A conversation: the user's messages, the model's replies, and the launches between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from qgpu_run.chat.prompts import system_prompt
from qgpu_run.chat.text_model import ChatSettings
from qgpu_run.chat.tool_calls import MalformedCall, Piece, ReplyParser, Text, ToolCall
from qgpu_run.chat.tools import NORMAL, TOOLS, CallRecord

MAX_CALLS = 6
"""Calls that the model may make for one message, mended ones included."""

MAX_TOKENS = 1024
"""Tokens of one turn."""


class Writer(Protocol):
    """What a conversation needs of a model; see `TextModel`."""

    folder: Path
    settings: ChatSettings
    tokenizer: Any

    def write(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], limit: int
    ) -> Iterator[int]:
        """The assistant's next turn, token by token."""
        ...


class Runner(Protocol):
    """What carries out calls; see `Tools`."""

    def run(self, call: ToolCall | MalformedCall, mode: str) -> CallRecord:
        """Carries out a call."""
        ...


@dataclass(frozen=True)
class Wrote:
    """The model wrote a piece of its reply."""

    piece: Piece


@dataclass(frozen=True)
class Called:
    """A call was carried out."""

    record: CallRecord


@dataclass(frozen=True)
class Answered:
    """The reply is complete.

    Attributes:
        text: what the user reads.
        calls: what was carried out for it.
        tokens: text tokens that the model wrote.
        seconds: what it took.
        stopped: why it ended before the model ended it: `cancelled`, `calls` or `tokens`.
    """

    text: str
    calls: tuple[CallRecord, ...]
    tokens: int
    seconds: float
    stopped: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "answer": self.text,
            "calls": [call.to_dict() for call in self.calls],
            "tokens": self.tokens,
            "seconds": round(self.seconds, 3),
            "stopped": self.stopped,
        }


Event = Wrote | Called | Answered


@dataclass
class Conversation:
    """Messages and what they lead to.

    Attributes:
        model: writes the replies.
        tools: carries out calls.
        mode: `normal` or `advanced`.
        messages: what was said, without the system message.
        cancelled: asked between tokens and behind calls; when it says so, the reply ends there.
    """

    model: Writer
    tools: Runner
    mode: str = NORMAL
    messages: list[dict[str, Any]] = field(default_factory=list)
    cancelled: Callable[[], bool] = lambda: False

    def reply(self, message: str) -> Iterator[Event]:
        """What happens after a message of the user; the last event is `Answered`.

        A reply that was cancelled stays in the conversation as far as it came.
        """
        began, texts, calls, tokens = time.perf_counter(), list[str](), list[CallRecord](), 0
        self.messages.append({"role": "user", "content": message})
        stopped: str | None = None
        while True:
            turn = _Turn()
            for token in self._write():
                tokens += 1
                turn.tokens += 1
                for piece in turn.feed(self.model.tokenizer, token):
                    yield Wrote(piece)
                if turn.call is not None:
                    break
                if self.cancelled():
                    stopped = "cancelled"
                    break
            for piece in turn.finish():
                yield Wrote(piece)
            self.messages.append(turn.message())
            if turn.text:
                texts.append(turn.text)
            if turn.call is None or stopped:
                stopped = stopped or ("tokens" if turn.tokens >= MAX_TOKENS else None)
                break
            record = self.tools.run(turn.call, self.mode)
            calls.append(record)
            self.messages.append({"role": "tool", "content": record.response})
            yield Called(record)
            if self.cancelled():
                stopped = "cancelled"
                break
            if len(calls) == MAX_CALLS:
                stopped = "calls"
                break
        seconds = time.perf_counter() - began
        yield Answered("\n".join(texts), tuple(calls), tokens, seconds, stopped)

    def clear(self) -> None:
        """Begins anew."""
        self.messages.clear()

    def _write(self) -> Iterator[int]:
        settings = self.model.settings
        prompt = system_prompt(settings, self.mode)
        system = [{"role": "system", "content": prompt}] if prompt else []
        tools = TOOLS[self.mode] if settings.tools_in_prompt else []
        return self.model.write(system + self.messages, tools, MAX_TOKENS)


class _Turn:
    """The assistant's turn as it is written, up to its first call."""

    def __init__(self) -> None:
        self.tokens = 0
        self.call: ToolCall | MalformedCall | None = None
        self._parser: ReplyParser | None = None
        self._text: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._text).strip()

    def feed(self, tokenizer: Any, token: int) -> list[Piece]:
        self._parser = self._parser or ReplyParser(tokenizer)
        return self._take(self._parser.feed(token))

    def finish(self) -> list[Piece]:
        return [] if self._parser is None else self._take(self._parser.finish())

    def _take(self, pieces: list[Piece]) -> list[Piece]:
        for piece in pieces:
            if isinstance(piece, Text):
                self._text.append(piece.text)
            elif isinstance(piece, ToolCall | MalformedCall):
                self.call = piece
        return pieces

    def message(self) -> dict[str, Any]:
        """The turn as a chat template takes it; a call that is none stays as text."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if isinstance(self.call, ToolCall):
            message["tool_calls"] = [self.call.message()]
        elif isinstance(self.call, MalformedCall):
            message["content"] = f"{self.text}\n<tool_call>{self.call.text}</tool_call>".strip()
        return message
