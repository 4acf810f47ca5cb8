"""Launches and recordings without a terminal, and pictures of the panel."""

from __future__ import annotations

import re
import time
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Footer

from qgpu_run.errors import RequestError
from qgpu_run.panel.app import PanelApp
from qgpu_run.panel.events import PanelFeed, Started
from qgpu_run.panel.live_launch import LiveLaunch
from qgpu_run.panel.recording import Recording
from qgpu_run.panel.recording_file import RecordingWriter

WAIT_SECONDS = 0.01


def record(
    launch: LiveLaunch, feed: PanelFeed, *, at: int | None = None, writer: RecordingWriter | None
) -> Recording:
    """Runs a launch to its end, or until it has written `at` tokens, and records it."""
    if at is not None:
        feed.allow(at)
    launch.start()
    recording: Recording | None = None
    while recording is None or not recording.ended:
        events = feed.take(1000)
        for event in events:
            if isinstance(event, Started):
                recording = Recording(event.info)
                if writer is not None:
                    writer.begin(event.info)
                continue
            if writer is not None:
                writer.write(event)
            if recording is not None:
                recording.append(event)
        if not events:
            if recording is not None and at is not None and recording.head >= at:
                feed.close()
            time.sleep(WAIT_SECONDS)
    launch.join()
    recording.seek(recording.head)
    return recording


def parse_size(text: str) -> tuple[int, int]:
    """Columns and rows out of a text such as `120x40`.

    Raises:
        RequestError: it is none.
    """
    match = re.fullmatch(r"(\d{1,3})x(\d{1,3})", text)
    if match is None or "0" in match.groups():
        raise RequestError(f"--size {text}: write COLUMNSxROWS, as in 120x40")
    return int(match[1]), int(match[2])


def save_screenshot(app: PanelApp, path: Path, size: tuple[int, int], at: int | None) -> None:
    """Runs an app without a terminal and saves a picture of it at a token, or at the end.

    The picture is an SVG that needs nothing from elsewhere.
    """

    async def wait(pilot: Pilot[object]) -> None:
        playback = app.panel.playback
        while app.panel.recording is None:
            await pilot.pause(WAIT_SECONDS)
        recording = app.panel.recording
        if at is not None:
            playback.go_to(at)
        while recording.position != at and not (recording.ended and recording.at_head):
            await pilot.pause(WAIT_SECONDS)
        app.panel.show()
        while not app.query_one(Footer).children:
            await pilot.pause(WAIT_SECONDS)
        await pilot.pause(0.5)
        picture = app.export_screenshot(title="qgpu-run watch")
        picture = re.sub(r"@font-face\s*\{.*?\}", "", picture, flags=re.DOTALL)
        path.write_text(picture, encoding="utf-8")
        app.exit()

    app.run(headless=True, size=size, auto_pilot=wait)
