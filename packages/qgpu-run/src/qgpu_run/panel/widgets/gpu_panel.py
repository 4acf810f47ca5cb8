"""The panel as one widget, for an app of its own or beside a chat."""

from __future__ import annotations

import re
import time
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from qgpu_run.panel.events import MOST_WAITING, Event, PanelFeed, Started
from qgpu_run.panel.lines.block_lines import block_lines
from qgpu_run.panel.lines.line import Line, Lines
from qgpu_run.panel.lines.memory_lines import find_address, memory_line, words_per_line
from qgpu_run.panel.lines.program_lines import program_lines
from qgpu_run.panel.lines.register_lines import register_lines
from qgpu_run.panel.lines.scheduler_lines import scheduler_lines
from qgpu_run.panel.lines.status_line import status_line, tabs_line, timeline
from qgpu_run.panel.lines.token_lines import token_line
from qgpu_run.panel.playback import Playback
from qgpu_run.panel.recording import Recording
from qgpu_run.panel.recording_file import RecordingWriter
from qgpu_run.panel.widgets.help_screen import HelpScreen
from qgpu_run.panel.widgets.lines_pane import LinesPane
from qgpu_run.panel.widgets.one_line import OneLine

FRAMES = 15
"""Pictures a second."""

FRAME_SECONDS = 0.03
"""Time that a picture may take to read new tokens."""

PIECE = 200
"""Tokens that are read between two looks at the clock."""

PANES = ("Warps", "Program", "Block", "Registers", "Memory", "Tokens")
WARPS, PROGRAM, BLOCK, REGISTERS, MEMORY, TOKENS = range(6)
COLUMNS = ((WARPS, TOKENS), (PROGRAM, BLOCK), (REGISTERS, MEMORY))

LEAST = (56, 12)
"""Columns and rows below which nothing can be read."""

WIDE = (132, 32)
"""Columns and rows from which on all panes are shown."""

TWO_COLUMNS, TWO_ROWS = 104, 38
"""Columns, or rows, from which on two panes are shown."""


class GpuPanel(Widget):
    """Shows the launches that a feed tells of.

    The panel takes events out of the feed fifteen times a second, so another thread may run the
    model. It has its own keys, which count while it or one of its panes has the focus.

    Args:
        feed: where events come from; None to show a recording alone.
        playing: whether time moves on at first.
        writer: gets the events of the first launch.
    """

    DEFAULT_CSS = """
    GpuPanel { layout: vertical; background: $background; }
    GpuPanel #columns { height: 1fr; }
    GpuPanel #columns > Vertical { width: 1fr; height: 1fr; }
    GpuPanel #program { height: 3fr; }
    GpuPanel #block { height: 4fr; }
    GpuPanel #warps { height: auto; max-height: 60%; min-height: 8; }
    GpuPanel.-few #warps, GpuPanel.-few #registers { height: 1fr; max-height: 100%; }
    GpuPanel #tokens { height: 3fr; }
    GpuPanel #registers { height: auto; max-height: 60%; min-height: 8; }
    GpuPanel #memory { height: 1fr; }
    GpuPanel.-stacked #columns { layout: vertical; }
    GpuPanel #place { height: 1; border: none; padding: 0 1; display: none; }
    GpuPanel #small { display: none; padding: 0 1; }
    GpuPanel.-tiny > * { display: none; }
    GpuPanel.-tiny > #small { display: block; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "run_or_pause", "run/pause"),
        Binding("left", "step(-1)", "token", key_display="← →"),
        Binding("right", "step(1)", "token", show=False),
        Binding("b", "step_block(-1)", "block", key_display="b n"),
        Binding("n", "step_block(1)", "block", show=False),
        Binding("minus", "faster(-1)", "speed", key_display="- +"),
        Binding("plus,equals_sign", "faster(1)", "speed", show=False),
        Binding("home", "ends(0)", "first", show=False),
        Binding("end", "ends(1)", "newest", show=False),
        Binding("1", "pane(0)", "panes", key_display="1-6"),
        *(Binding(str(i + 1), f"pane({i})", PANES[i], show=False) for i in range(1, len(PANES))),
        Binding("left_square_bracket", "other_pass(-1)", "pass", show=False),
        Binding("right_square_bracket", "other_pass(1)", "pass", show=False),
        Binding("f", "follow", "follow", show=False),
        Binding("x", "base", "hex", show=False),
        Binding("a", "every", "all registers", show=False),
        Binding("g", "place('address')", "go to", show=False),
        Binding("t", "place('token')", "token", show=False),
        Binding("m", "next_array", "array", show=False),
        Binding("question_mark", "help", "help", key_display="?"),
    ]

    class LaunchEnded(Message):
        """The newest launch has ended, and all of it has been taken."""

        def __init__(self, recording: Recording) -> None:
            super().__init__()
            self.recording = recording

    class LaunchStarted(Message):
        """A launch has begun."""

    def __init__(
        self,
        feed: PanelFeed | None = None,
        *,
        playing: bool = True,
        writer: RecordingWriter | None = None,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.feed = feed
        self.playback = Playback(feed, playing=playing)
        self.writer = writer
        self.base = 10
        self.every = False
        self.active = BLOCK
        self.chosen_pass: int | None = None
        self.first_stop: int | None = None
        """Where the first launch is stopped, if `playing` is off."""
        self._focused = False
        self._timer: Timer | None = None
        self._ticked = time.monotonic()
        self._told_end = False
        self._place = "address"
        self._last_array = -1

    @property
    def recording(self) -> Recording | None:
        """The launch that is shown."""
        return self.playback.recording

    def open_recording(self, recording: Recording, position: int = 0) -> None:
        """Shows a recording from a position on."""
        self._begin(recording)
        recording.seek(position)
        if not self.playback.playing:
            self.playback.go_to(position)
        if self.is_mounted:
            self.show()

    def compose(self) -> ComposeResult:
        """The panes."""
        yield Static(id="small")
        yield OneLine(lambda width: status_line(self.playback, width), id="status")
        yield OneLine(lambda width: tabs_line(PANES, self.active, width), id="tabs")
        with Horizontal(id="columns"):
            for column in COLUMNS:
                with Vertical():
                    for pane in column:
                        yield LinesPane(f"{pane + 1} {PANES[pane]}", id=PANES[pane].lower())
        yield Input(id="place", compact=True)
        yield OneLine(lambda width: timeline(self.playback, width), id="timeline")

    def on_mount(self) -> None:
        """Starts the clock."""
        self._timer = self.set_interval(1 / FRAMES, self._tick)
        self._arrange()

    def on_resize(self, event: events.Resize) -> None:
        """Chooses how many panes there is room for."""
        self._arrange()

    def pane(self, index: int) -> LinesPane:
        """One of `PANES`."""
        return self.query_one(f"#{PANES[index].lower()}", LinesPane)

    # Events and time.

    def _tick(self) -> None:
        self._keep_focus()
        now = time.monotonic()
        passed, self._ticked = now - self._ticked, now
        came = self._take(now + FRAME_SECONDS)
        moved = False
        while self.playback.tick(passed, PIECE):
            moved, passed = True, 0.0
            recording = self.recording
            if recording is None or recording.at_head or time.monotonic() > now + FRAME_SECONDS:
                break
        recording = self.recording
        if recording is not None and recording.ended and not self._told_end:
            self._told_end = True
            self.post_message(self.LaunchEnded(recording))
        if moved or came:
            self.show()

    def _take(self, until: float) -> bool:
        """Takes new events; whether there were any."""
        if self.feed is None:
            return False
        recording, found = self.recording, False
        if recording is not None and self.playback.playing:
            # What is not shown yet comes first; the engine waits meanwhile.
            behind = not recording.at_head and self.playback.tokens_per_second is None
            if behind and recording.head - recording.position > MOST_WAITING:
                return False
        while time.monotonic() < until:
            taken = self.feed.take(PIECE)
            if not taken:
                break
            found = True
            for event in taken:
                self._take_event(event)
        return found

    def _take_event(self, event: Event) -> None:
        if isinstance(event, Started):
            base = None
            old = self.recording
            if old is not None and old.info.config == event.info.config:
                old.seek(old.head)
                base = old.view
            self._begin(Recording(event.info, base))
            if self.writer is not None:
                self.writer.begin(event.info)
            if self.first_stop is not None:
                self.playback.go_to(self.first_stop)
                self.first_stop = None
            self.post_message(self.LaunchStarted())
            return
        if self.writer is not None:
            self.writer.write(event)
        if self.recording is not None:
            self.recording.append(event)

    def _begin(self, recording: Recording) -> None:
        self.playback.begin(recording)
        self._told_end = recording.ended
        self.chosen_pass, self._last_array = None, -1

    # What is shown.

    def _arrange(self) -> None:
        width, height = self.size
        tiny = width < LEAST[0] or height < LEAST[1]
        self.set_class(tiny, "-tiny")
        if tiny:
            text = (
                f"The panel needs {LEAST[0]} columns and {LEAST[1]} rows, "
                f"here are {width} and {height}."
            )
            self.query_one("#small", Static).update(text)
            return
        visible = self._visible()
        self.set_class(len(visible) == 2 and width < TWO_COLUMNS, "-stacked")
        self.set_class(len(visible) < len(PANES), "-few")
        self.query_one("#tabs").display = len(visible) < len(PANES)
        for column, vertical in zip(COLUMNS, self.query("#columns > Vertical"), strict=True):
            vertical.display = any(pane in visible for pane in column)
            for pane in column:
                self.pane(pane).display = pane in visible
        self.call_after_refresh(self.show)

    def take_focus(self) -> None:
        """Gives the active pane the focus as soon as it is there."""
        self._focused = True
        self.pane(self.active).focus()

    def _keep_focus(self) -> None:
        """A pane that is hidden loses the focus; the panel would lose its keys."""
        if self.has_focus_within:
            self._focused = True
        elif self.app.focused is not None:
            self._focused = False
        elif self._focused and not self.has_class("-tiny"):
            self.pane(self.active).focus()

    def _visible(self) -> tuple[int, ...]:
        width, height = self.size
        if width >= WIDE[0] and height >= WIDE[1]:
            return tuple(range(len(PANES)))
        if width < TWO_COLUMNS and height < TWO_ROWS:
            return (self.active,)
        # Panes that stand in other columns.
        beside = TOKENS if self.active not in (WARPS, TOKENS) else BLOCK
        return (self.active, beside)

    def shown_pass(self) -> int:
        """The pass whose registers are shown: the chosen one, else the one that runs."""
        recording = self.recording
        if self.chosen_pass is not None:
            return self.chosen_pass
        if recording is None or recording.view.run is None:
            return 0
        return recording.view.run.pass_

    def show(self) -> None:
        """Draws what has changed."""
        if not self.is_mounted or self.has_class("-tiny"):
            return
        self.query_one("#status", OneLine).refresh()
        self.query_one("#timeline", OneLine).refresh()
        for index in self._visible():
            self._show_pane(index)

    def _show_pane(self, index: int) -> None:
        pane, recording = self.pane(index), self.recording
        if recording is None:
            pane.show_lines(Lines([[("no launch yet", "dim")]]))
            return
        view, info, columns = recording.view, recording.info, pane.columns
        base = "decimal" if self.base == 10 else "hexadecimal"
        match index:
            case 0:
                pane.show_lines(scheduler_lines(view, info, self.shown_pass()))
            case 1:
                pane.show_lines(program_lines(view, info))
                pane.border_subtitle = f"{len(info.image.blocks)} blocks"
            case 2:
                pane.show_lines(block_lines(view, base=self.base, columns=columns))
            case 3:
                g = self.shown_pass()
                pane.show_lines(
                    register_lines(view, info, g, base=self.base, columns=columns, every=self.every)
                )
                warp = g // view.config.passes_per_warp
                chosen = "" if self.chosen_pass is None else ", chosen"
                pane.border_title = f"{index + 1} Registers: warp {warp}, pass {g}{chosen}"
                pane.border_subtitle = base
            case 4:
                self._show_memory(pane, recording)
                late = f", {view.stores_unread} stores not read yet" if view.stores_unread else ""
                pane.border_subtitle = f"{base}, byte addresses{late}"
            case _:
                at = recording.position
                known = min(len(recording.notes), at)

                def line(number: int) -> Line:
                    return token_line(recording, number, columns)

                pane.show(known, line, (at - 1, at - 1) if at else None)
                pane.border_subtitle = "logit margin in bf16 steps"

    def _show_memory(self, pane: LinesPane, recording: Recording) -> None:
        view, info = recording.view, recording.info
        count = words_per_line(view, self.base, pane.columns)

        def line(number: int) -> Line:
            return memory_line(view, info, number * count, count, self.base)

        newest = max(view.memory_changed_at, key=view.memory_changed_at.__getitem__, default=None)
        focus = None if newest is None else (newest // count, newest // count)
        pane.show(-(-view.config.memory_words // count), line, focus)

    # Keys.

    def action_run_or_pause(self) -> None:
        """Runs or pauses."""
        recording = self.recording
        ended = recording is not None and recording.ended
        if ended and recording is not None and recording.position == recording.head:
            self.playback.go_to(0)
            self.playback.play()
        else:
            self.playback.toggle()
        self.show()

    def action_step(self, by: int) -> None:
        """Moves by tokens."""
        self.playback.step(by)
        self.show()

    def action_step_block(self, by: int) -> None:
        """Moves by blocks."""
        self.playback.step_block(by)
        self.show()

    def action_faster(self, by: int) -> None:
        """Chooses a speed."""
        self.playback.faster(by)
        self.show()

    def action_ends(self, newest: int) -> None:
        """Moves to the first or the newest token."""
        recording = self.recording
        if recording is not None:
            self.playback.go_to(recording.head if newest else 0)
            self.show()

    def action_pane(self, index: int) -> None:
        """Chooses a pane."""
        self.active = index
        self._arrange()
        self.query_one("#tabs", OneLine).refresh()
        self.pane(index).focus()

    def action_other_pass(self, by: int) -> None:
        """Shows the registers of another pass."""
        recording = self.recording
        if recording is None:
            return
        passes = recording.view.passes
        there = [g for g, own in enumerate(passes) if own.exists] or [0]
        at = there.index(self.shown_pass()) if self.shown_pass() in there else 0
        self.chosen_pass = there[(at + by) % len(there)]
        self.show()

    def action_follow(self) -> None:
        """All panes follow what runs."""
        self.chosen_pass = None
        for index in range(len(PANES)):
            self.pane(index).follow = True
        self.show()

    def action_base(self) -> None:
        """Decimal or hexadecimal."""
        self.base = 26 - self.base
        self.show()

    def action_every(self) -> None:
        """All registers, or those the program names."""
        self.every = not self.every
        self.show()

    def action_next_array(self) -> None:
        """Shows the next array in memory."""
        recording = self.recording
        if recording is not None and recording.info.arrays:
            self._last_array = (self._last_array + 1) % len(recording.info.arrays)
            self._go_to_word(recording.info.arrays[self._last_array].address // 4)

    def _go_to_word(self, address: int) -> None:
        self.action_pane(MEMORY)

        def scroll() -> None:
            pane, recording = self.pane(MEMORY), self.recording
            if recording is not None:
                count = words_per_line(recording.view, self.base, pane.columns)
                pane.go_to_line(address // count)
                self.show()

        self.call_after_refresh(scroll)

    def action_place(self, kind: str) -> None:
        """Asks for an address or for a token's number."""
        field = self.query_one("#place", Input)
        self._place = kind
        field.placeholder = (
            "address: a, a[3], 0x40, s0x10 (shared)" if kind == "address" else "token number"
        )
        field.value = ""
        field.display = True
        field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Goes where the user said."""
        event.stop()
        recording, text = self.recording, event.value.strip()
        self._close_place()
        if recording is None or not text:
            return
        if self._place == "token":
            if re.fullmatch("[0-9]{1,9}", text):
                self.playback.go_to(int(text))
                self.show()
            else:
                self._warn(f"'{text}' is no token number")
            return
        address = find_address(text, recording.info)
        if address is None:
            self._warn(f"'{text}' is no address")
        else:
            self._go_to_word(address)

    def _warn(self, text: str) -> None:
        # What the user wrote is no markup.
        self.notify(text, severity="warning", markup=False)

    def on_key(self, event: events.Key) -> None:
        """Escape closes the field for a place."""
        if event.key == "escape" and self.query_one("#place", Input).has_focus:
            event.stop()
            self._close_place()

    def _close_place(self) -> None:
        self.query_one("#place", Input).display = False
        self.pane(self.active).focus()

    def action_help(self) -> None:
        """Shows all keys."""
        self.app.push_screen(HelpScreen())
