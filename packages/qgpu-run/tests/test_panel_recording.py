"""Events, recordings, playback: what a panel shows without one."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import NANO
from qgpu_isa.testing import random_launch
from qgpu_isa.vocabulary import TokenClass
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.errors import RequestError
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.panel.describe_token import lanes_text, meaning
from qgpu_run.panel.events import MOST_WAITING, Decoded, PanelFeed, Started
from qgpu_run.panel.headless import record
from qgpu_run.panel.live_launch import LiveLaunch
from qgpu_run.panel.machine_view import decode_token
from qgpu_run.panel.playback import SPEEDS, Playback
from qgpu_run.panel.recording import CHECKPOINT_TOKENS, Recording
from qgpu_run.panel.recording_file import RecordingWriter, read_recording
from qgpu_run.panel.state_to_dict import recording_to_dict, view_to_dict
from qgpu_run.panel.watched_engine import WatchedEngine
from qgpu_run.session import Session


def run(launch: Launch, path: Path | None = None, **options: object) -> Recording:
    feed = PanelFeed()
    live = LiveLaunch(
        LaunchRequest(launch), InterpreterEngine(launch.config), feed, max_tokens=5000
    )
    writer = None if path is None else RecordingWriter(path)
    return record(live, feed, writer=writer, **options)


@pytest.fixture
def long() -> Recording:
    """More tokens than there are between two checkpoints."""
    for seed in range(100):
        launch = random_launch(NANO, seed, max_tokens=4000)
        recording = run(launch)
        if recording.head > 2 * CHECKPOINT_TOKENS:
            return recording
    raise AssertionError("no random launch is long enough")


def test_every_way_to_a_position_shows_the_same(long: Recording) -> None:
    fresh = Recording(long.info)
    for event in long.events:
        fresh.append(event)
    wanted = {}
    for position in range(0, long.head + 1, 37):
        fresh.seek(position)
        wanted[position] = view_to_dict(fresh.view)
    places = list(wanted)
    random.Random(1).shuffle(places)
    for position in places:
        long.seek(position)
        assert long.position == position
        assert view_to_dict(long.view) == wanted[position]
    assert len(long.notes) == long.head


def test_memory_is_right_at_every_token(scale: Launch) -> None:
    recording = run(scale)
    assert recording.view.memory[16:21] == [200, 210, 220, 230, 240]
    recording.seek(0)
    # The setup is read before the first token.
    assert recording.view.memory[16:21] == [0, 10, 20, 30, 40]
    assert recording.view.cta == 0
    changes = []
    for position in range(recording.head + 1):
        recording.seek(position)
        changes.append(tuple(recording.view.memory))
        assert recording.view.stores_unread == 0
    assert len(set(changes)) > 3


def test_blocks_are_found(scale: Launch) -> None:
    recording = run(scale)
    execs, position = [], 0
    while True:
        found = recording.block_after(position)
        if found is None:
            break
        assert recording.block_before(found + 1) == found
        execs.append(found)
        position = found
    tokens = [decode_token(NANO, event.token) for event in recording.tokens]
    assert execs == [i + 1 for i, t in enumerate(tokens) if t.cls is TokenClass.EXEC]
    assert recording.block_before(execs[0]) == 0


def test_every_token_has_a_meaning(long: Recording) -> None:
    texts = {meaning(note, NANO) for note in long.notes}
    assert "" not in texts
    assert "setup" not in texts
    assert lanes_text(0b0100_1111, NANO.__class__(**{**NANO.__dict__, "lanes": 8})) == "0-3 6"


def test_a_file_holds_everything(scale: Launch, tmp_path: Path) -> None:
    path = tmp_path / "launch.jsonl"
    recording = run(scale, path)
    again = read_recording(path)
    again.seek(again.head)
    assert recording_to_dict(again) == recording_to_dict(recording)
    assert again.outcome["tokens"] == recording.head
    # A file that was cut off shows what it has.
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[: len(lines) // 2]))
    half = read_recording(path)
    assert 0 < half.head < again.head
    assert half.ended


@pytest.mark.parametrize("text", ["", "{}", "[1]", "nothing", '{"qgpu_recording": 1}', "\xff"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(RequestError, match=r"other\.jsonl"):
        read_recording(path)


def test_a_fault_is_shown(faulty: Launch) -> None:
    recording = run(faulty)
    assert recording.view.fault is not None
    assert "out of range" in recording.outcome["problems"][0]
    assert not recording.view.cta_runs


def test_a_lying_engine_does_not_break_the_view(scale: Launch, lying) -> None:
    for at in range(3, 12):
        for token in (0, 300, 1240, 1250, 1900, 2475, 99999, -5):
            feed = PanelFeed()
            live = LiveLaunch(LaunchRequest(scale), lying(at=at, token=token), feed, max_tokens=50)
            shown: Recording | None = None
            # What the engine itself makes of its lie does not matter here.
            with suppress(Exception):
                live.run()
            for event in feed.take(10_000):
                if shown is None:
                    shown = Recording(event.info)
                else:
                    shown.append(event)
            shown.seek(shown.head)
            shown.seek(0)


def test_a_session_keeps_the_state(scale: Launch) -> None:
    feed = PanelFeed(holds=False)
    engine = WatchedEngine(InterpreterEngine(NANO), feed)
    session = Session(engine)
    shown: Recording | None = None
    for launch in range(2):
        feed.launch_started(NANO, scale.image, scale)
        _, memory = session.run(LaunchRequest(scale))
        feed.launch_ended()
        for event in feed.take(10_000):
            if isinstance(event, Started):
                shown = Recording(event.info, None if shown is None else shown.view)
            elif shown is not None:
                shown.append(event)
        shown.seek(shown.head)
        assert shown.view.memory == memory, launch
        assert shown.view.strange == 0


def test_a_pause_holds_the_model(scale: Launch) -> None:
    feed = PanelFeed()
    playback = Playback(feed, playing=False)
    live = LiveLaunch(LaunchRequest(scale), InterpreterEngine(NANO), feed, max_tokens=5000)
    live.start()
    recording = Recording(feed_until(feed, 1)[0].info)
    playback.begin(recording)

    def settle() -> int:
        for _ in range(20):
            time.sleep(0.005)
            for event in feed.take(1000):
                recording.append(event)
            playback.tick(0.0)
        return recording.head

    assert settle() == 0
    playback.step(1)
    assert (settle(), recording.position) == (1, 1)
    playback.step_block(1)
    settle()
    at = recording.position
    assert at == recording.head == recording.block_after(1)
    playback.step(-1)
    assert (settle(), recording.position) == (at, at - 1)
    playback.step(3)
    assert (settle(), recording.position) == (at + 2, at + 2)
    playback.speed = SPEEDS.index(10)
    playback.play()
    assert settle() == at + 2
    playback.tick(0.5)
    assert at + 2 < settle() <= at + 8
    playback.faster(99)
    settle()
    assert recording.ended
    live.join(5)
    assert live.outcome is not None
    playback.tick(1.0)
    assert recording.position == recording.head
    playback.step_block(1)
    playback.step(5)
    assert recording.position == recording.head


def test_a_pause_holds_the_next_launch_too(scale: Launch) -> None:
    feed = PanelFeed()
    playback = Playback(feed)
    run_to_end = LiveLaunch(LaunchRequest(scale), InterpreterEngine(NANO), feed, max_tokens=5000)
    run_to_end.run()
    first, *events = feed.take(10_000)
    assert isinstance(first, Started)
    recording = Recording(first.info)
    playback.begin(recording)
    for event in events:
        recording.append(event)
    playback.tick(0.0)
    playback.go_to(7)
    # The panel has not seen yet that it has begun; keys are still about the one before.
    live = LiveLaunch(LaunchRequest(scale), InterpreterEngine(NANO), feed, max_tokens=5000)
    live.start()
    time.sleep(0.1)
    playback.step(1)
    time.sleep(0.1)
    started, *events = feed.take(10_000)
    assert isinstance(started, Started)
    assert not any(isinstance(event, Decoded) for event in events)
    playback.begin(Recording(started.info))
    playback.play()
    live.join(5)
    assert live.outcome is not None


def feed_until(feed: PanelFeed, count: int) -> list[object]:
    events: list[object] = []
    while len(events) < count:
        events += feed.take(count - len(events))
        time.sleep(0.001)
    return events


def test_closing_stops_an_endless_launch(endless: Launch) -> None:
    feed = PanelFeed()
    live = LiveLaunch(LaunchRequest(endless), InterpreterEngine(NANO), feed, max_tokens=10**9)
    live.start()
    while len(feed.take(100)) < 100:
        time.sleep(0.001)
    feed.close()
    live.join(5)
    assert live.outcome is None
    assert "launch" not in {thread.name for thread in threading.enumerate()}


def test_an_engine_ahead_of_the_panel_waits(endless: Launch) -> None:
    feed = PanelFeed()
    live = LiveLaunch(LaunchRequest(endless), InterpreterEngine(NANO), feed, max_tokens=10**9)
    live.start()
    time.sleep(0.5)
    many = len(feed._events)
    assert many <= MOST_WAITING + 2
    feed.close()
    live.join(5)
