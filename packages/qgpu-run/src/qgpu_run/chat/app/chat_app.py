"""The chat in a terminal: transcript, field, and the GPU beside them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Footer, Static

from qgpu_run.chat.app.command import is_command, run_command
from qgpu_run.chat.app.commands import COMMANDS
from qgpu_run.chat.app.composer import Composer
from qgpu_run.chat.app.events import ChatEvent, Note, Progress
from qgpu_run.chat.app.history import History, history_file
from qgpu_run.chat.app.session import ChatOptions, ChatSession, Opener, open_model
from qgpu_run.chat.app.transcript import Transcript
from qgpu_run.chat.app.worker import Worker, run_job
from qgpu_run.chat.conversation import Answered, Wrote
from qgpu_run.panel.app import THEMES, default_theme
from qgpu_run.panel.events import PanelFeed
from qgpu_run.panel.lines.line import Line
from qgpu_run.panel.widgets.gpu_panel import GpuPanel
from qgpu_run.panel.widgets.one_line import OneLine

LEAST = (40, 10)
"""Columns and rows below which there is no room for a chat."""

WIDE = 150
"""Columns from which on chat and panel stand side by side."""

AGAIN_SECONDS = 2.0
"""Time in which a second Ctrl+C quits."""

END_SECONDS = 5.0
"""Time that the end has when the terminal is gone or the system asks for it."""

LARGEST_MESSAGE = 100_000
"""Characters; more is no question."""


class ChatApp(App[None]):
    """A chat with a model that computes on its own GPU.

    Args:
        options: what to open.
        panel: whether the panel is shown where there is room for it.
        opener: opens models.
        history: what the user wrote before; None to take that of the user's state folder.
        theme_name: one of `THEMES`.
    """

    TITLE = "qgpu"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: $background; }
    #body { height: 1fr; }
    #chat { width: 1fr; }
    GpuPanel { width: 1fr; display: none; border-left: vkey $primary; }
    #small { display: none; padding: 0 1; }
    .-beside GpuPanel { display: block; }
    .-full GpuPanel { display: block; border-left: none; }
    .-full #chat { display: none; }
    .-tiny #body, .-tiny Footer { display: none; }
    .-tiny #small { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "stop"),
        Binding("ctrl+j", "nothing", "new line", key_display="^j"),
        Binding("f2", "panel", "GPU"),
        Binding("f3", "panel_keys", "GPU's keys"),
        Binding("ctrl+c", "interrupt", "quit", priority=True, show=False),
    ]

    class Told(Message):
        """Something happened in the worker's thread."""

        def __init__(self, event: ChatEvent) -> None:
            super().__init__()
            self.event = event

    def __init__(
        self,
        options: ChatOptions,
        *,
        panel: bool = True,
        opener: Opener = open_model,
        history: History | None = None,
        theme_name: str | None = None,
    ) -> None:
        super().__init__()
        self.feed = PanelFeed()
        self.session = ChatSession(options, self._tell, feed=self.feed, opener=opener)
        self.theme_name = theme_name or default_theme()
        self.transcript = Transcript()
        self.composer = Composer(COMMANDS, history or History(history_file()))
        self.panel = GpuPanel(self.feed)
        self._worker = Worker(self._tell)
        self._beside, self._full = panel, False
        self._progress = ""
        self._written = 0
        self._interrupted = 0.0

    def compose(self) -> ComposeResult:
        """All parts."""
        yield Static(id="small")
        with Horizontal(id="body"):
            with Vertical(id="chat"):
                yield self.transcript
                yield self.composer
                yield OneLine(self._status, id="state")
            yield self.panel
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Loads the model while the window is already there."""
        self.begin_capture_print(self)
        self.set_theme(self.theme_name)
        self.composer.field.focus()
        self._arrange()
        self.set_interval(0.1, self._show_state)
        self._catch_signals()
        self._worker.start()
        self.submit(self.session.begin)

    def on_unmount(self) -> None:
        """Ends what runs."""
        self.session.cancellation.ask()
        self.feed.close()

    # What commands need; see `Front`.

    @property
    def busy(self) -> bool:
        """Whether a job runs."""
        return self._worker.busy

    @property
    def panel_shown(self) -> bool:
        """Whether the panel is seen."""
        return self.screen.has_class("-beside") or self.screen.has_class("-full")

    def submit(self, job: Callable[[], None]) -> None:
        """Runs a job in the worker's thread."""
        if not self.busy:
            self.session.cancellation.begin()
            self._written = 0
        self._worker.submit(job)

    def say(self, text: str) -> None:
        """Shows a note, from any thread."""
        self._tell(Note(text))

    def clear(self) -> None:
        """Takes away what is shown."""
        self.transcript.empty()

    def show_panel(self, shown: bool) -> None:
        """Shows the panel beside the chat, or in its place where there is no room."""
        if self.size.width >= WIDE:
            self._beside = shown
        else:
            self._full = shown
        self._arrange()

    def set_theme(self, name: str) -> None:
        """Chooses colours."""
        self.theme_name = name
        light = name == "terminal" and default_theme() == "light"
        self.theme = "ansi-light" if light else THEMES[name]

    def quit(self) -> None:
        """Ends the chat and what runs."""
        self.session.cancellation.ask()
        self.feed.close()
        self.exit()

    # What happens.

    def _tell(self, event: ChatEvent) -> None:
        # The loop may end while the worker still has something to tell.
        with suppress(RuntimeError):
            self.post_message(self.Told(event))

    def on_chat_app_told(self, message: Told) -> None:
        """Shows what happened."""
        event = message.event
        if isinstance(event, Progress):
            self._progress = event.text
        elif isinstance(event, Wrote):
            self._written += 1
        elif isinstance(event, Answered):
            self._written = 0
        self.transcript.take(event)
        self._show_state()

    def on_print(self, event: events.Print) -> None:
        """What loading writes to standard error says how far it is."""
        # click writes empty bytes to see what takes text.
        text = event.text if isinstance(event.text, str) else ""
        lines = [line for line in re.split(r"[\r\n]", text) if line.strip()]
        if lines and self.session.opening:
            self._progress = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", lines[-1]).strip()

    def on_composer_sent(self, event: Composer.Sent) -> None:
        """Takes a message or a command."""
        text = event.text
        if is_command(text):
            self.composer.accept()
            run_job(lambda: run_command(self, text, COMMANDS), self._tell)
            return
        if self.busy and not self.session.opening:
            self.notify("Escape ends what runs; then send again.", title="busy", timeout=3)
            return
        if len(text) > LARGEST_MESSAGE:
            self.notify(f"A message has at most {LARGEST_MESSAGE} characters.", severity="error")
            return
        self.composer.accept()
        self.transcript.said(text)
        self.submit(lambda: self.session.reply(text))

    def on_composer_scroll(self, event: Composer.Scroll) -> None:
        """Moves the transcript."""
        if event.pages < 0:
            self.transcript.scroll_page_up()
        else:
            self.transcript.scroll_page_down()

    def on_composer_left(self) -> None:
        """Quits."""
        self.quit()

    # Keys.

    def action_cancel(self) -> None:
        """Ends what runs; else gives the field the focus."""
        if self.busy and not self.session.opening:
            self.session.cancellation.ask()
            self._hold()
            return
        if self._full and self.size.width < WIDE:
            self.show_panel(False)
        self.composer.field.focus()

    def action_interrupt(self) -> None:
        """Copies a selection, ends what runs, empties the field, or quits the second time."""
        selected = self.screen.get_selected_text() or self.composer.field.selected_text
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        elif self.busy and not self.session.opening and not self.session.cancellation.asked():
            self.session.cancellation.ask()
            self._hold()
        elif self.composer.text:
            self.composer.text = ""
        elif time.monotonic() - self._interrupted < AGAIN_SECONDS:
            self.quit()
        else:
            self._interrupted = time.monotonic()
            self.notify("Ctrl+C again quits.", timeout=AGAIN_SECONDS)

    def action_nothing(self) -> None:
        """Named in the footer; the field has the key."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """New lines are for the field alone."""
        return action != "nothing" or not self.panel.has_focus_within

    def action_panel(self) -> None:
        """Shows the panel, or hides it."""
        self.show_panel(not self.panel_shown)

    def action_panel_keys(self) -> None:
        """Gives the panel the focus, or takes it back."""
        if self.panel.has_focus_within:
            self.composer.field.focus()
        else:
            if not self.panel_shown:
                self.show_panel(True)
            self.panel.take_focus()

    # What is shown.

    def on_resize(self, event: events.Resize) -> None:
        """Chooses what there is room for."""
        self._arrange(event.size)

    def _arrange(self, size: Size | None = None) -> None:
        width, height = size or self.size
        if width >= WIDE:
            self._full = False
        tiny = width < LEAST[0] or height < LEAST[1]
        screen = self.screen_stack[0]
        was_full = screen.has_class("-full")
        screen.set_class(tiny, "-tiny")
        screen.set_class(self._beside and width >= WIDE, "-beside")
        screen.set_class(self._full and width < WIDE, "-full")
        screen.query_one("#small", Static).update(
            f"The chat needs {LEAST[0]} columns and {LEAST[1]} rows, here are {width} and {height}."
        )
        if screen.has_class("-full") and not was_full:
            self.panel.take_focus()
        elif not self.panel_shown or was_full:
            self.composer.field.focus()
        self._hold()

    def _hold(self) -> None:
        """A panel that is seen may hold the model; one that is hidden may not."""
        self.feed.holds = self.panel_shown and not self.session.cancellation.asked()

    def _panel_waits(self) -> bool:
        """Whether a launch waits for keys in the panel."""
        playback, recording = self.panel.playback, self.panel.recording
        if not self.feed.holds or playback.playing or playback.steps:
            return False
        return recording is not None and not recording.ended

    def _show_state(self) -> None:
        self._hold()
        for line in self.screen_stack[0].query("#state"):
            line.refresh()

    def _status(self, width: int) -> Line:
        session = self.session
        state: Line = []
        if session.opening or self._progress:
            state = [(self._progress or "loading", "wait")]
        elif self.busy and session.cancellation.asked():
            state = [("stopping", "wait")]
        elif self.busy:
            gpu = session.cancellation.gpu_tokens
            if self._panel_waits():
                state = [("the panel holds the GPU: F3, then space", "wait")]
            else:
                counts = f"{self._written} written" + (f", {gpu} by the GPU" if gpu else "")
                state = [(f"working: {counts}", "run"), ("  Esc stops", "dim")]
        check = "checked" if session.checks else "not checked"
        about = f"{session.model_name}  {session.mode}  {check}"
        room = width - sum(len(text) for text, _ in state) - 2
        if len(about) > room:
            about = about[-room:] if room > 20 else ""
        gap = max(2, width - len(about) - sum(len(text) for text, _ in state))
        return [(about, "dim"), (" " * gap, ""), *state]

    def _catch_signals(self) -> None:
        def end(number: int) -> None:
            timer = threading.Timer(END_SECONDS, os._exit, [128 + number])
            timer.daemon = True
            timer.start()
            self.quit()

        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGHUP, signal.SIGTERM):
                loop.add_signal_handler(number, end, number)
