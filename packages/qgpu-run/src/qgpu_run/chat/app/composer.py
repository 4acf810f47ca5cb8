"""Where the user writes: several lines, history, completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text as RichText
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from qgpu_run.chat.app.command import Command, Completion, complete
from qgpu_run.chat.app.history import History

NEW_LINE = ("ctrl+j", "shift+enter", "alt+enter")


class MessageInput(TextArea):
    """The field; the composer sees its keys first."""

    DEFAULT_CSS = """
    MessageInput {
        height: auto; max-height: 8; border: none; padding: 0 1; background: $surface;
    }
    MessageInput:focus { border: none; }
    """

    def __init__(self, composer: Composer) -> None:
        super().__init__(
            placeholder="Ask, or / for commands", compact=True, highlight_cursor_line=False
        )
        self._composer = composer

    async def _on_key(self, event: events.Key) -> None:
        if self._composer.take_key(event.key):
            event.stop()
            event.prevent_default()


class Composer(Vertical):
    """The field, and above it the ways to go on with a command.

    Args:
        commands: by name.
        history: what was sent.
    """

    DEFAULT_CSS = """
    Composer { height: auto; max-height: 16; border-top: solid $primary; }
    Composer #completions {
        height: auto; max-height: 6; border: none; padding: 0 1; background: $panel;
        display: none; scrollbar-size-vertical: 1;
    }
    """

    class Sent(Message):
        """The user sent something; `Composer.accept` takes it out of the field."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Scroll(Message):
        """The transcript is to move by pages."""

        def __init__(self, pages: int) -> None:
            super().__init__()
            self.pages = pages

    class Left(Message):
        """The user wants to leave."""

    KEYS: ClassVar[dict[str, str]] = {
        "enter": "_send",
        "tab": "_take_completion",
        "up": "_up",
        "down": "_down",
        "escape": "_hide",
        "ctrl+d": "_leave",
        "pageup": "_page_up",
        "pagedown": "_page_down",
        **dict.fromkeys(NEW_LINE, "_new_line"),
    }

    def __init__(self, commands: Mapping[str, Command], history: History) -> None:
        super().__init__()
        self._commands, self._history = commands, history
        self.field = MessageInput(self)
        self._completions: list[Completion] = []
        self._moved = False
        self._looked_at = ""
        self._recalled: str | None = None

    def compose(self) -> ComposeResult:
        """List and field."""
        options = OptionList(id="completions", compact=True, markup=False)
        options.can_focus = False
        yield options
        yield self.field

    @property
    def text(self) -> str:
        """What is in the field."""
        return self.field.text

    @text.setter
    def text(self, text: str) -> None:
        self.field.text = text
        self.field.move_cursor(self.field.document.end)

    @property
    def completions(self) -> list[Completion]:
        """What is offered."""
        return self._completions

    def accept(self) -> None:
        """Takes what was sent out of the field, into the history."""
        self._history.add(self.text.strip())
        self.text = ""

    def take_key(self, key: str) -> bool:
        """Whether a key is done with; if not, the field takes it."""
        name = self.KEYS.get(key)
        if name is None:
            return False
        self.on_text_area_changed()
        return bool(getattr(self, name)())

    def on_text_area_changed(self) -> None:
        """Looks for completions; a key may come before the field has told of the one before."""
        if self._looked_at == self.text:
            return
        self._looked_at = self.text
        recalled = self._recalled == self.text
        self._recalled = self.text if recalled else None
        self._offer([] if recalled else complete(self.text, self._commands))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A completion was clicked."""
        event.stop()
        self.text = self._completions[event.option_index].text

    def _offer(self, completions: list[Completion]) -> None:
        if [completion.text for completion in completions] == [self.text]:
            completions = []
        self._completions, self._moved = completions, False
        options = self._options
        options.display = bool(completions)
        width = max((len(c.text.rstrip()) for c in completions), default=0)
        options.clear_options()
        options.add_options([Option(_option_text(c, width)) for c in completions])
        options.highlighted = 0 if completions else None

    @property
    def _options(self) -> OptionList:
        return self.query_one("#completions", OptionList)

    def _send(self) -> bool:
        if self._completions and self._moved:
            return self._take_completion()
        if self.text.strip():
            self.post_message(self.Sent(self.text.strip()))
        return True

    def _take_completion(self) -> bool:
        if self._completions:
            self.text = self._completions[self._options.highlighted or 0].text
        return True

    def _up(self) -> bool:
        if self._completions:
            return self._move(-1)
        if not self.field.cursor_at_first_line:
            return False
        return self._recall(self._history.older(self.text))

    def _down(self) -> bool:
        if self._completions:
            return self._move(1)
        if not self.field.cursor_at_last_line:
            return False
        return self._recall(self._history.newer())

    def _move(self, by: int) -> bool:
        options = self._options
        options.highlighted = ((options.highlighted or 0) + by) % len(self._completions)
        self._moved = True
        return True

    def _recall(self, text: str | None) -> bool:
        if text is not None:
            self._recalled = text
            self.text = text
        return True

    def _hide(self) -> bool:
        if not self._completions:
            return False
        self._offer([])
        return True

    def _leave(self) -> bool:
        if self.text:
            return False
        self.post_message(self.Left())
        return True

    def _page_up(self) -> bool:
        self.post_message(self.Scroll(-1))
        return True

    def _page_down(self) -> bool:
        self.post_message(self.Scroll(1))
        return True

    def _new_line(self) -> bool:
        self.field.insert("\n")
        return True


def _option_text(completion: Completion, width: int) -> RichText:
    text = RichText(f"{completion.text.rstrip():{width}}", no_wrap=True, overflow="ellipsis")
    return text.append(f"  {completion.help}", "dim") if completion.help else text
