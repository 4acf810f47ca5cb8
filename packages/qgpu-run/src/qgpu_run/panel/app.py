"""The panel as an app of its own."""

from __future__ import annotations

import os
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer

from qgpu_run.panel.events import PanelFeed
from qgpu_run.panel.live_launch import LiveLaunch
from qgpu_run.panel.recording import Recording
from qgpu_run.panel.recording_file import RecordingWriter
from qgpu_run.panel.widgets.gpu_panel import GpuPanel

THEMES = {"dark": "textual-dark", "light": "textual-light", "terminal": "ansi-dark"}


def default_theme() -> str:
    """Dark, unless the terminal says that its background is light."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in ("7", "15") else "dark"


class PanelApp(App[None]):
    """Shows one launch, live or recorded.

    Args:
        feed: of the live launch; None to show a recording.
        launch: the live launch, which is started when the panel is there.
        recording: what to show.
        at: token at which the view is, and stops, at first.
        theme_name: one of `THEMES`.
    """

    TITLE = "qgpu"
    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "next_theme", "colours", show=False),
        Binding("q", "quit", "quit"),
    ]

    def __init__(
        self,
        *,
        feed: PanelFeed | None = None,
        launch: LiveLaunch | None = None,
        recording: Recording | None = None,
        at: int | None = None,
        playing: bool = True,
        writer: RecordingWriter | None = None,
        theme_name: str | None = None,
    ) -> None:
        super().__init__()
        self.panel = GpuPanel(feed, playing=playing, writer=writer)
        self._feed, self._launch = feed, launch
        self._recording, self._at = recording, at
        self._theme_name = theme_name or default_theme()

    def compose(self) -> ComposeResult:
        """The panel and its keys."""
        yield self.panel
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Starts the launch."""
        self._set_theme()
        self.panel.take_focus()
        if self._recording is not None:
            self.panel.open_recording(self._recording, self._at or 0)
        elif self._at is not None:
            self.panel.first_stop = self._at
        if self._launch is not None:
            self._launch.start()

    def on_unmount(self) -> None:
        """Ends the launch."""
        if self._feed is not None:
            self._feed.close()

    def action_next_theme(self) -> None:
        """Dark, light, the terminal's colours."""
        names = list(THEMES)
        self._theme_name = names[(names.index(self._theme_name) + 1) % len(names)]
        self._set_theme()

    def _set_theme(self) -> None:
        light = self._theme_name == "terminal" and default_theme() == "light"
        self.theme = "ansi-light" if light else THEMES[self._theme_name]
