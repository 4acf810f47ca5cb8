"""A line of its own: the status above the panes, the tabs, the timeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.widget import Widget

from qgpu_run.panel.lines.line import Line


class OneLine(Widget):
    """Draws what `line` gives for its width."""

    DEFAULT_CSS = """
    OneLine { height: 1; width: 1fr; padding: 0 1; background: $background; }
    OneLine > .line--dim { color: $text-muted; }
    OneLine > .line--label { color: $text-primary; text-style: bold; }
    OneLine > .line--run { color: $text-success; }
    OneLine > .line--wait { color: $text-secondary; text-style: bold; }
    OneLine > .line--bad { color: $text-error; text-style: bold; }
    OneLine > .line--mark { text-style: reverse; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"line--{role}" for role in ("dim", "label", "run", "wait", "bad", "mark")
    }

    def __init__(self, line: Callable[[int], Line], *, id: str) -> None:
        super().__init__(id=id)
        self._line = line

    def render(self) -> Text:
        """The line."""
        text = Text(no_wrap=True, overflow="crop")
        for part, role in self._line(self.content_size.width):
            style = self.get_component_rich_style(f"line--{role}") if role else ""
            text.append(part, style)
        return text
