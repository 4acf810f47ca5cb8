"""What was said and computed, from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text as RichText
from textual.containers import VerticalScroll
from textual.widget import Widget

from qgpu_run.chat.app.describe import (
    answer_numbers,
    call_numbers,
    clean,
    message_calls,
    response_line,
)
from qgpu_run.chat.app.events import (
    Calculated,
    ChatEvent,
    Launched,
    Loaded,
    Note,
    Opened,
)
from qgpu_run.chat.conversation import Answered, Called, Wrote
from qgpu_run.chat.questions.problems import ERROR
from qgpu_run.chat.tool_calls import MalformedCall, Text, Thought, ToolCall
from qgpu_run.chat.tools import CALCULATE, CallRecord
from qgpu_run.outcome import Outcome

MOST_BLOCKS = 400
"""Pieces that are kept on the screen; older ones are in the conversation all the same."""

_FENCE = re.compile(r"^```([\w+-]*)[ \t]*\n(.*?)(?:^```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


class Block(Widget):
    """A piece of the transcript that draws itself anew when its content or the theme changes."""

    DEFAULT_CSS = """
    Block { height: auto; width: 1fr; }
    Block > .block--good { color: $text-success; text-style: bold; }
    Block > .block--bad { color: $text-error; }
    Block > .block--wrong { color: $text-error; text-style: bold reverse; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"block--{role}" for role in ("good", "bad", "wrong")}

    def render(self) -> RenderableType:
        """The content."""
        raise NotImplementedError

    def code(self, source: str, language: str) -> RichText:
        """Source text with colours that suit the theme."""
        theme = "ansi_dark" if self.app.current_theme.dark else "ansi_light"
        source = clean(source).strip("\n")
        text = Syntax("", language, theme=theme).highlight(source)
        text.rstrip()
        text.style = ""
        return text

    def styled(self, text: str, role: str) -> RichText:
        """Text in one of the colours of blocks."""
        return RichText(clean(text), self.get_component_rich_style(f"block--{role}", partial=True))


class Words(Block):
    """Text that may still grow: a message, a reply, a thought, a note.

    Args:
        kind: class for its looks: user, reply, thought, note, bad, numbers.
    """

    DEFAULT_CSS = """
    Words { margin: 0 0 1 0; padding: 0 1; }
    Words.user { color: $text-primary; text-style: bold; border-left: outer $primary; }
    Words.reply { padding: 0 1 0 2; margin: 0; }
    Words.thought { color: $text-muted; text-style: italic; padding: 0 1 0 2; margin: 0; }
    Words.note { color: $text-muted; }
    Words.bad { color: $text-error; }
    Words.numbers { color: $text-muted; padding: 0 1 0 2; }
    """

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(classes=kind)
        self.text = clean(text)
        self.kind = kind
        self._complete = kind != "reply"

    def append(self, text: str) -> None:
        """Adds to the end."""
        self.text += clean(text)
        self.refresh(layout=True)

    def complete(self) -> None:
        """Nothing follows: fences of code become colours."""
        self._complete = True
        self.refresh(layout=True)

    def render(self) -> RenderableType:
        """The text."""
        if self.kind != "reply" or not self._complete or "```" not in self.text:
            return RichText(self.text.strip("\n") if self.kind == "reply" else self.text)
        parts: list[RichText] = []
        at = 0
        for found in _FENCE.finditer(self.text):
            parts.append(RichText(self.text[at : found.start()].strip("\n")))
            parts.append(self.code(found[2], found[1] or "text"))
            at = found.end()
        parts.append(RichText(self.text[at:].strip("\n")))
        return Group(*(part for part in parts if part.plain))


class CallBlock(Block):
    """A call of the GPU: what was asked, and as soon as it is known what came of it."""

    DEFAULT_CSS = """
    CallBlock {
        margin: 0 1 1 2; padding: 0 1; background: $surface; border-left: thick $accent;
    }
    CallBlock.-failed { border-left: thick $error; }
    """

    def __init__(self, tool: str, arguments: Mapping[str, str]) -> None:
        super().__init__()
        self.tool, self.arguments = tool, arguments
        self.response = ""
        self.numbers = ""
        self.failed = self.wrong = False

    @property
    def waiting(self) -> bool:
        """Whether nothing has come of it yet."""
        return not self.response

    def finish(self, record: CallRecord) -> None:
        """Shows what came of it."""
        self.answer(record.response, record.failed, call_numbers(record), record.exact is False)

    def answer(self, response: str, failed: bool, numbers: str = "", wrong: bool = False) -> None:
        """Shows what came of it.

        Args:
            response: what went back to the model.
            failed: whether that is an error.
            numbers: what it took.
            wrong: whether the model and the interpreter differ.
        """
        self.response, self.failed, self.numbers, self.wrong = response, failed, numbers, wrong
        self.set_class(failed or wrong, "-failed")
        self.refresh(layout=True)

    def render(self) -> RenderableType:
        """Call and result."""
        parts: list[RichText] = []
        if "source" in self.arguments:
            parts.append(self.code(self.arguments["source"], "cuda"))
        for name, value in self.arguments.items():
            if name != "source":
                parts.append(RichText(clean(value).strip(), "bold"))
        if self.response:
            line = response_line(self.response, self.failed)
            parts.append(self.styled(line, "bad" if self.failed else "good"))
        if self.numbers:
            wrong = self.styled(self.numbers, "wrong")
            parts.append(wrong if self.wrong else RichText(self.numbers, "dim"))
        return Group(*parts)


class LaunchBlock(Block):
    """A kernel file that ran."""

    DEFAULT_CSS = """
    LaunchBlock {
        margin: 0 1 1 2; padding: 0 1; background: $surface; border-left: thick $accent;
    }
    LaunchBlock.-failed { border-left: thick $error; }
    """

    def __init__(self, command: str, outcome: Outcome) -> None:
        super().__init__(classes="-failed" if outcome.status else "")
        self.text = f"{command}\n{outcome.to_text()}"

    def render(self) -> RenderableType:
        """Command and outcome."""
        text = RichText(clean(self.text))
        text.stylize("bold", 0, self.text.index("\n"))
        return text


class Transcript(VerticalScroll):
    """Shows events, and stays at the end unless the user scrolls."""

    DEFAULT_CSS = "Transcript { height: 1fr; padding: 1 0 0 0; scrollbar-size-vertical: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.can_focus = False
        self.blocks: list[Block] = []

    def on_mount(self) -> None:
        """Stays at the end."""
        self.anchor()

    def add(self, block: Block) -> None:
        """Puts a block at the end."""
        self.blocks.append(block)
        self.mount(block)
        for old in self.blocks[:-MOST_BLOCKS]:
            old.remove()
        del self.blocks[:-MOST_BLOCKS]
        self.anchor()

    def empty(self) -> None:
        """Takes all blocks away."""
        for block in self.blocks:
            block.remove()
        self.blocks.clear()

    def said(self, text: str) -> None:
        """Shows what the user wrote."""
        self.add(Words(text, "user"))

    def take(self, event: ChatEvent) -> None:
        """Shows what happened."""
        match event:
            case Wrote(piece):
                self._take_piece(piece)
            case Called(record):
                self._pending(record).finish(record)
            case Calculated(record):
                block = CallBlock(record.tool, record.arguments)
                self.add(block)
                block.finish(record)
            case Launched(command, outcome):
                self.add(LaunchBlock(f"run {command}", outcome))
            case Answered():
                self._end_words()
                self.add(Words(answer_numbers(event), "numbers"))
            case Note(text, bad):
                self.add(Words(text, "bad" if bad else "note"))
            case Loaded(note):
                if note:
                    self.add(Words(note, "note"))
            case Opened(messages):
                self.empty()
                self._take_messages(messages)
            case _:
                pass

    def _take_piece(self, piece: Text | Thought | ToolCall | MalformedCall) -> None:
        if isinstance(piece, Text | Thought):
            kind = "reply" if isinstance(piece, Text) else "thought"
            last = self.blocks[-1] if self.blocks else None
            if isinstance(last, Words) and last.kind == kind:
                last.append(piece.text)
            elif piece.text.strip():
                self.add(Words(piece.text.lstrip("\n"), kind))
            return
        self._end_words()
        if isinstance(piece, ToolCall):
            self.add(CallBlock(piece.name, piece.arguments))
        else:
            self.add(CallBlock("", {"text": piece.text}))

    def _pending(self, record: CallRecord) -> CallBlock:
        last = self.blocks[-1] if self.blocks else None
        if isinstance(last, CallBlock) and last.waiting:
            return last
        block = CallBlock(record.tool, record.arguments)
        self.add(block)
        return block

    def _end_words(self) -> None:
        if self.blocks and isinstance(self.blocks[-1], Words):
            self.blocks[-1].complete()

    def _take_messages(self, messages: Sequence[Mapping[str, Any]]) -> None:
        for message in messages[-MOST_BLOCKS:]:
            if message["role"] == "user":
                self.said(message["content"])
            elif message["role"] == "tool":
                last = self.blocks[-1] if self.blocks else None
                block = last if isinstance(last, CallBlock) else CallBlock(CALCULATE, {})
                if block is not last:
                    self.add(block)
                block.answer(message["content"], message["content"].startswith(ERROR))
            else:
                if message["content"]:
                    words = Words(message["content"], "reply")
                    self.add(words)
                    words.complete()
                for name, arguments in message_calls(dict(message)):
                    self.add(CallBlock(name, arguments))
