"""Qwen3.5's tool calls, read from the tokens that a model writes.

The layout is that of the model's chat template:

    <tool_call>
    <function=NAME>
    <parameter=NAME>
    value, of one line or more
    </parameter>
    </function>
    </tool_call>
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_FUNCTION = re.compile(r"\s*<function=([^<>\n]+)>(.*)</function>\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=([^<>\n]+)>\n?(.*?)\n?</parameter>\s*", re.DOTALL)


@dataclass(frozen=True)
class ToolCall:
    """A call that the model wrote.

    Attributes:
        name: of the tool.
        arguments: values by parameter, as written.
    """

    name: str
    arguments: Mapping[str, str]

    def message(self) -> dict[str, Any]:
        """As chat templates take it, in an assistant's `tool_calls`."""
        return {
            "type": "function",
            "function": {"name": self.name, "arguments": dict(self.arguments)},
        }


@dataclass(frozen=True)
class MalformedCall:
    """Something between the tags of a call that is none.

    Attributes:
        text: what the model wrote there.
        reason: what is wrong, for the model to read.
    """

    text: str
    reason: str


@dataclass(frozen=True)
class Text:
    """Text for the user."""

    text: str


@dataclass(frozen=True)
class Thought:
    """Text that the model wrote for itself."""

    text: str


Piece = Text | Thought | ToolCall | MalformedCall


def parse_call(text: str) -> ToolCall | MalformedCall:
    """What stands between `<tool_call>` and `</tool_call>`."""
    found = _FUNCTION.fullmatch(text)
    if found is None:
        return MalformedCall(text, "a call is <function=NAME>, parameters, </function>")
    name, rest, arguments = found[1].strip(), found[2], dict[str, str]()
    while rest.strip():
        parameter = _PARAMETER.match(rest)
        if parameter is None:
            return MalformedCall(text, "a parameter is <parameter=NAME>, a value, </parameter>")
        arguments[parameter[1].strip()] = parameter[2]
        rest = rest[parameter.end() :]
    return ToolCall(name, arguments)


@dataclass
class ReplyParser:
    """Reads a reply token by token, so that tags inside of text are never taken for tags.

    Args:
        tokenizer: the model's.
    """

    tokenizer: Any
    _kind: type[Text] | type[Thought] | None = Text
    _waiting: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = ("<tool_call>", "</tool_call>", "<think>", "</think>")
        ids = self.tokenizer.convert_tokens_to_ids(list(names))
        unknown = self.tokenizer.unk_token_id
        self._tags = {
            token: name
            for token, name in zip(ids, names, strict=True)
            if token is not None and token != unknown
        }

    def feed(self, token: int) -> list[Piece]:
        """What is complete with one more token."""
        tag = self._tags.get(token)
        if self._kind is None:
            if tag != "</tool_call>":
                self._waiting.append(token)
                return []
            call = parse_call(self._decode())
            self._kind = Text
            return [call]
        if tag == "<tool_call>" and self._kind is Text:
            pieces = self.finish()
            self._kind = None
            return pieces
        if tag in ("<think>", "</think>"):
            pieces = self.finish()
            self._kind = Thought if tag == "<think>" else Text
            return pieces
        self._waiting.append(token)
        text = self.tokenizer.decode(self._waiting, skip_special_tokens=True)
        if text.endswith("\ufffd"):
            # A character of several tokens goes on.
            return []
        self._waiting.clear()
        return [self._kind(text)] if text else []

    def finish(self) -> list[Piece]:
        """What is left at the end."""
        if self._kind is None:
            return [MalformedCall(self._decode(), "the call has no end: </tool_call> is missing")]
        text = self._decode()
        return [self._kind(text)] if text else []

    def _decode(self) -> str:
        text: str = self.tokenizer.decode(self._waiting, skip_special_tokens=True)
        self._waiting.clear()
        return text
