"""The line above the panes, the tabs, and the timeline below."""

from __future__ import annotations

import math

from qgpu_run.panel.lines.line import Line, Role
from qgpu_run.panel.playback import Playback

State = tuple[str, Role]


def launch_state(playback: Playback) -> State:
    """What the launch is doing, in words."""
    recording = playback.recording
    if recording is None:
        return "waits for a launch", "dim"
    view = recording.view
    if recording.position < recording.head:
        return ("▶ replays" if playback.playing else "‖ history"), "mark"
    if recording.ended:
        if recording.problem:
            return f"■ {recording.problem.splitlines()[0]}", "bad"
        if view.fault is not None or recording.outcome.get("problems"):
            return "■ failed", "bad"
        return "■ ended", "label"
    if not playback.playing and not playback.steps:
        return "‖ paused", "wait"
    if not recording.head:
        return f"▶ reads {view.setup} setup tokens", "run"
    return "▶ runs", "run"


def status_line(playback: Playback, width: int) -> Line:
    """Kernel, machine, state and counts, as many as there is room for."""
    recording = playback.recording
    state = launch_state(playback)
    if recording is None:
        return [("qgpu ", "label"), state]
    info, view, at = recording.info, recording.view, recording.position
    seconds = recording.seconds_at(at)
    rate = recording.rate_at(at)
    parts: list[tuple[str, Role]] = [
        (info.kernel, "label"),
        state,
        (f"{at} tokens", ""),
        (f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s", ""),
        (f"{seconds:.1f} s", ""),
        (f"{info.config.name}, {info.engine}", "dim"),
    ]
    if math.isfinite(view.min_margin):
        parts.append((f"margin at least {view.min_margin:.0f}", "dim"))
    if view.strange:
        parts.insert(2, (f"{view.strange} tokens make no sense", "bad"))
    line: Line = []
    used = 0
    for text, role in parts:
        if used + len(text) + 2 > width and line:
            break
        line += [(text, role), ("  ", "")]
        used += len(text) + 2
    return line


def timeline(playback: Playback, width: int) -> Line:
    """Where in the recording the view is, and the chosen speed."""
    recording = playback.recording
    at, head = (0, 0) if recording is None else (recording.position, recording.head)
    speed = playback.tokens_per_second
    tail = f" {at}/{head}  speed {'max' if speed is None else f'{speed:g}/s'}"
    room = max(4, width - len(tail))
    done = room - 1 if at >= head else int(at / head * (room - 1))
    return [
        ("━" * done, "run"),
        ("●", "run"),
        ("─" * (room - 1 - done), "dim"),
        (tail, ""),
    ]


def tabs_line(names: tuple[str, ...], active: int, width: int) -> Line:
    """The panes' names with their keys; the active one is marked."""
    short = sum(len(name) + 5 for name in names) > width
    line: Line = []
    for index, name in enumerate(names):
        text = f" {index + 1} {name[:5] if short else name} "
        line += [(text, "mark" if index == active else ""), (" ", "")]
    return line
