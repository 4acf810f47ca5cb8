"""Conversations in files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu_isa.checked_json import Fields, load_object
from qgpu_isa.files import write_text

from qgpu_run.chat.tools import MODES
from qgpu_run.errors import RequestError

VERSION = 1

LARGEST_FILE = 16 << 20
"""Bytes; a conversation of this size is beyond any model."""


@dataclass(frozen=True)
class SavedChat:
    """A conversation as it is kept.

    Attributes:
        model: folder of its model, None for the stand-in.
        mode: `normal` or `advanced`.
        messages: as `Conversation.messages` has them.
    """

    model: str | None
    mode: str
    messages: tuple[dict[str, Any], ...]

    def write(self, path: Path) -> None:
        """Writes it beside its place and renames it; takes no other file's place.

        Raises:
            InputError: the place cannot be written.
            RequestError: something else is there.
        """
        if path.exists() and not (path.is_file() and path.stat().st_size == 0):
            try:
                self.read(path)
            except RequestError:
                raise RequestError(
                    f"{path} is there already, and is no saved conversation: choose another name"
                ) from None
        values = {
            "qgpu_chat": VERSION,
            "model": self.model,
            "mode": self.mode,
            "messages": list(self.messages),
        }
        write_text(path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> SavedChat:
        """Reads what `write` wrote.

        Raises:
            RequestError: it cannot be read, or is something else; names what is wrong.
        """
        if path.exists() and not path.is_file():
            # Reading a pipe or a device might never end.
            kind = "folder" if path.is_dir() else "pipe or device"
            raise RequestError(f"{path} is a {kind}, no saved conversation")
        if path.is_file() and path.stat().st_size > LARGEST_FILE:
            raise RequestError(f"{path} is too large for a conversation")
        fields = Fields(load_object(path, RequestError), str(path), RequestError)
        fields.integer("qgpu_chat", VERSION, VERSION)
        model = fields.text("model") if "model" in fields else None
        messages = [
            _message(message, f"{path}: message {number}")
            for number, message in enumerate(fields.array("messages"), 1)
        ]
        return cls(model, fields.text("mode", MODES), tuple(messages))


def _message(data: Any, where: str) -> dict[str, Any]:
    """A message with the parts that a conversation has, and no others."""
    if not isinstance(data, dict):
        raise RequestError(f"{where} is no object")
    fields = Fields(data, where, RequestError)
    role = fields.text("role", ("user", "assistant", "tool"))
    message: dict[str, Any] = {"role": role, "content": _text(fields, "content")}
    if role == "assistant" and "tool_calls" in fields:
        calls = fields.array("tool_calls")
        if not all(isinstance(call, dict) for call in calls):
            fields.fail("tool_calls", "a list of objects")
        message["tool_calls"] = [_call(Fields(call, where, RequestError)) for call in calls]
    return message


def _call(fields: Fields) -> dict[str, Any]:
    function = fields.inner("function")
    arguments = function.inner("arguments")
    return {
        "type": "function",
        "function": {
            "name": _text(function, "name"),
            "arguments": {name: _text(arguments, name) for name in arguments.data},
        },
    }


def _text(fields: Fields, name: str) -> str:
    """A string; JSON can name halves of characters, which no model reads and no file holds."""
    return fields.text(name).encode("utf-8", "replace").decode("utf-8")
