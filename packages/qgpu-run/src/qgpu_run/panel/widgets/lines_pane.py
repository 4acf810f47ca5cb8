"""A pane of lines that scrolls and keeps what matters in sight."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from qgpu_run.panel.lines.line import Line, Lines, Role

ROLES: tuple[Role, ...] = ("dim", "label", "run", "new", "changed", "wait", "bad", "mark")


class LinesPane(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows lines; a line is made only when it is drawn.

    Attributes:
        follow: whether the pane scrolls by itself; scrolling by hand ends that.
    """

    DEFAULT_CSS = """
    LinesPane {
        border: round $foreground 25%;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        padding: 0 0 0 1;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        background: $background;
        & .lines--dim { color: $text-disabled; }
        & .lines--label { color: $text-primary; }
        & .lines--run { color: $text-success; text-style: bold; }
        & .lines--new { color: $text-warning; text-style: bold; }
        & .lines--changed { color: $text-warning; }
        & .lines--wait { color: $text-secondary; }
        & .lines--bad { color: $text-error; text-style: bold; }
        & .lines--mark { text-style: reverse; }
        &:ansi .lines--dim { text-style: dim; }
    }
    LinesPane:focus { border: round $primary; border-title-color: $text; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"lines--{role}" for role in ROLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_by(-1)", "Scroll", show=False),
        Binding("down", "scroll_by(1)", "Scroll", show=False),
        Binding("pageup", "scroll_pages(-1)", "Scroll", show=False),
        Binding("pagedown", "scroll_pages(1)", "Scroll", show=False),
    ]

    def __init__(self, title: str, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = title
        self.follow = True
        self._count = 0
        self._head = 0
        self._line: Callable[[int], Line] = lambda _: []
        self._drawn: list[Line | None] = []
        self._styles: dict[Role, Style] = {}

    @property
    def columns(self) -> int:
        """Columns for text, the scrollbar not among them."""
        spare = 0 if self.show_vertical_scrollbar else 1
        return max(1, self.scrollable_content_region.width - spare)

    def show_lines(self, lines: Lines) -> None:
        """Shows all lines of a list."""
        self.show(len(lines.lines), lines.lines.__getitem__, lines.focus, lines.head)

    def show(
        self,
        count: int,
        line: Callable[[int], Line],
        focus: tuple[int, int] | None = None,
        head: int = 0,
    ) -> None:
        """Shows `count` lines, made by `line`; see `Lines` for the others."""
        self._line, self._head = line, head
        if count != self._count or self.virtual_size.height != count:
            self._count = count
            self.virtual_size = Size(self.content_size.width, count)
        if self.follow and focus is not None:
            self._reveal(*focus)
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = self.scroll_y
        self._refresh_changed()

    def _refresh_changed(self) -> None:
        """Draws the lines in sight that are other than before."""
        width = self.size.width
        drawn = [self._line_at(y) for y in range(self.size.height)]
        changed = [
            Region(0, y, width, 1)
            for y, line in enumerate(drawn)
            if y >= len(self._drawn) or line != self._drawn[y]
        ]
        self._drawn = drawn
        if changed:
            self.refresh(*changed)

    def _line_at(self, y: int) -> Line | None:
        """The line in a row of the pane, None below the last."""
        index = y if y < self._head else y + self.scroll_offset.y
        return self._line(index) if index < self._count else None

    def _reveal(self, first: int, last: int) -> None:
        """Scrolls as little as it takes to see lines, the first rather than the last."""
        height = self.content_size.height
        low, high = self.scroll_offset.y + self._head, self.scroll_offset.y + height - 1
        if first < low:
            self._scroll(first - self._head - max(0, (height - self._head) // 4))
        elif last > high:
            below = max(0, (height - self._head) // 4) if last < self._count - 1 else 0
            self._scroll(min(first - self._head, last - height + 1 + below))

    def _scroll(self, y: int) -> None:
        # The scrollbar's range is laid out later; what is out of it is clamped then.
        self.scroll_to(y=max(0, y), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """Draws one line of the pane."""
        line = self._line_at(y)
        width = self.scrollable_content_region.width
        if line is None:
            return Strip.blank(width, self._style(""))
        segments = [Segment(text, self._style(role)) for text, role in line]
        return Strip(segments).adjust_cell_length(width, self._style(""))

    def _style(self, role: Role) -> Style:
        found = self._styles.get(role)
        if found is None:
            found = self.rich_style
            if role:
                found += self.get_component_rich_style(f"lines--{role}")
            self._styles[role] = found
        return found

    def notify_style_update(self) -> None:
        """Colours have changed."""
        self._styles = {}
        super().notify_style_update()

    def action_scroll_by(self, lines: int) -> None:
        """Scrolls by hand."""
        self.follow = False
        self._scroll(self.scroll_offset.y + lines)

    def action_scroll_pages(self, pages: int) -> None:
        """Scrolls by hand."""
        self.action_scroll_by(pages * max(1, self.content_size.height - self._head - 1))

    def go_to_line(self, index: int) -> None:
        """Scrolls by hand to a line, which is then at the top."""
        self.follow = False
        self._scroll(index - self._head)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scrolls by hand."""
        self.follow = False

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scrolls by hand."""
        self.follow = False
