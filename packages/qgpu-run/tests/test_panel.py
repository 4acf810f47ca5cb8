"""The panel itself, in Textual's pilot and in a terminal of our own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import DEFAULT, NANO
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.kernel_to_launch import kernel_to_request
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.panel.app import PanelApp
from qgpu_run.panel.events import PanelFeed
from qgpu_run.panel.lines.line import text_of
from qgpu_run.panel.live_launch import LiveLaunch
from qgpu_run.panel.widgets.gpu_panel import PANES, GpuPanel
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input, Static

from .terminal import Terminal

KERNELS = Path(__file__).resolve().parents[3] / "kernels"


def app_for(request: LaunchRequest, **options: object) -> PanelApp:
    feed = PanelFeed()
    engine = InterpreterEngine(request.launch.config)
    live = LiveLaunch(request, engine, feed, max_tokens=10**9)
    return PanelApp(feed=feed, launch=live, theme_name="dark", **options)


def kernel(name: str) -> LaunchRequest:
    return kernel_to_request(KERNELS / f"{name}.ptx", LaunchOptions(), DEFAULT)


def drive(
    app: App[None], script: Callable[[Pilot[None]], object], size: tuple[int, int] = (80, 24)
) -> None:
    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            await script(pilot)

    asyncio.run(go())


async def until(pilot: Pilot[None], true: Callable[[], object]) -> None:
    for _ in range(500):
        if true():
            return
        await pilot.pause(0.02)
    raise AssertionError("it never came to that")


def texts(panel: GpuPanel, index: int) -> list[str]:
    """What stands in a pane."""
    pane = panel.pane(index)
    return ["".join(s.text for s in pane.render_line(y)).rstrip() for y in range(pane.size.height)]


def test_run_pause_step_and_back(scale: Launch) -> None:
    app = app_for(LaunchRequest(scale, kernel="scale"), playing=False)

    async def script(pilot: Pilot[None]) -> None:
        panel = app.panel
        await until(pilot, lambda: panel.recording)
        recording = panel.recording
        await pilot.press("right")
        await until(pilot, lambda: recording.position == 1)
        assert recording.head == 1
        await pilot.press("n")
        await until(pilot, lambda: recording.position > 1)
        block = recording.position
        assert block == recording.head
        await pilot.press("right", "right")
        await until(pilot, lambda: recording.position == block + 2)
        await pilot.press("b", "b")
        assert recording.position < block
        await pilot.press("space")
        await until(pilot, lambda: recording.ended and recording.at_head)
        assert app._launch.outcome.status == 0
        end = recording.head
        await pilot.press("home")
        assert (recording.position, recording.view.cta) == (0, 0)
        await pilot.press("end")
        assert recording.position == end
        await pilot.press("left")
        assert recording.position == end - 1
        await pilot.press("t", *"7", "enter")
        assert recording.position == 7
        await pilot.press("t", "escape")
        assert recording.position == 7

    drive(app, script)


def test_the_panes_show_the_machine(scale: Launch) -> None:
    app = app_for(kernel("sort/bitonic_sort"), at=600, playing=False)

    async def script(pilot: Pilot[None]) -> None:
        panel = app.panel
        await until(pilot, lambda: panel.recording and panel.recording.position == 600)
        await pilot.pause(0.2)
        view = panel.recording.view
        for index, words in enumerate(
            (
                ["warp 0", "runs block", "waits for CTA"],
                [f"▶ block {view.run.block}", "branch"],
                [f"block {view.run.block}", "lane", "branch"],
                ["tid", "lane", "r0"],
                ["00000"],
                ["600 ", "runs block"],
            )
        ):
            await pilot.press(str(index + 1))
            await pilot.pause(0.15)
            shown = "\n".join(texts(panel, index))
            for word in words:
                assert word in shown, (PANES[index], word, shown)
        await pilot.press("4")
        values = [text for text in texts(panel, 3) if text.lstrip().startswith("r3 ")]
        row = view.registers[panel.shown_pass()][3]
        assert values[0].split()[1:] == [str(w) for w in row]
        await pilot.press("x")
        assert panel.base == 16
        before = panel.shown_pass()
        await pilot.press("right_square_bracket")
        assert panel.shown_pass() != before
        await pilot.press("f", "a")
        await pilot.pause(0.2)
        assert panel.shown_pass() == before
        assert any(text.lstrip().startswith("r8 ") for text in texts(panel, 3))
        await pilot.press("g", *"s0x10", "enter")
        await pilot.pause(0.2)
        assert texts(panel, 4)[0].lstrip().startswith("s00010")
        await pilot.press("m")
        await pilot.pause(0.2)
        assert "x[0]" in texts(panel, 4)[0]
        await pilot.press("g", *"nowhere", "enter", "question_mark")
        await pilot.press("escape")
        for _ in range(3):
            await pilot.press("d")

    drive(app, script)


def test_places_that_are_none(scale: Launch) -> None:
    app = app_for(LaunchRequest(scale))

    async def script(pilot: Pilot[None]) -> None:
        panel = app.panel
        await until(pilot, lambda: panel.recording and panel.recording.ended)
        for key in "tg":
            for text in ("²", "[/x]", "9" * 5000, f"a[{'9' * 5000}]"):
                await pilot.press(key)
                panel.query_one("#place", Input).value = text
                await pilot.press("enter")
                await pilot.pause(0.05)
        assert app.is_running

    drive(app, script)


SIZES = [(200, 60), (160, 48), (132, 32), (120, 30), (110, 45), (80, 50), (80, 24), (60, 14)]


def test_every_size(scale: Launch) -> None:
    app = app_for(kernel("blocks/four_warps_rotate"), at=400, playing=False)

    async def script(pilot: Pilot[None]) -> None:
        panel = app.panel
        await until(pilot, lambda: panel.recording and panel.recording.position == 400)
        for width, height in [*SIZES, (40, 10), (1, 1), (80, 24)]:
            await pilot.resize_terminal(width, height)
            await pilot.pause(0.1)
            tiny = (width, height) in ((40, 10), (1, 1))
            assert panel.has_class("-tiny") == tiny
            shown = [i for i in range(6) if panel.pane(i).display and panel.pane(i).size.height]
            assert tiny or len(shown) == len(panel._visible())
            for index in [] if tiny else shown:
                pane = panel.pane(index)
                assert pane.region.right <= width
                assert pane.region.bottom <= height - 2
                assert pane.size.height >= 3
                for text in texts(panel, index):
                    assert len(text) <= pane.size.width

    drive(app, script, size=SIZES[0])


def test_quitting_stops_the_model(endless: Launch) -> None:
    app = app_for(LaunchRequest(endless))

    async def script(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: app.panel.recording and app.panel.recording.position > 500)
        await pilot.press("q")

    drive(app, script)
    app._launch.join(5)
    assert app._launch.outcome is None
    assert not app._launch._thread.is_alive()


def test_a_fast_model_leaves_the_panel_awake(endless: Launch) -> None:
    app = app_for(LaunchRequest(endless))

    async def script(pilot: Pilot[None]) -> None:
        panel = app.panel
        await until(pilot, lambda: panel.recording and panel.recording.position > 100)
        recording = panel.recording
        for _ in range(4):
            # A key is answered although the model writes on.
            await pilot.press("3")
            await until(pilot, lambda seen=recording.position: recording.position > seen)

    drive(app, script, size=(160, 48))


class Chat(App[None]):
    """Another app with the panel at its side."""

    CSS = "GpuPanel { dock: right; width: 70; }"

    def __init__(self, feed: PanelFeed) -> None:
        super().__init__()
        self.feed, self.told = feed, []

    def compose(self) -> ComposeResult:
        yield Static("chat")
        yield GpuPanel(self.feed)

    def on_gpu_panel_launch_started(self) -> None:
        self.told.append("started")

    def on_gpu_panel_launch_ended(self, message: GpuPanel.LaunchEnded) -> None:
        self.told.append(message.recording.outcome["tokens"])


def test_the_panel_at_the_side_of_another_app(scale: Launch) -> None:
    feed = PanelFeed()
    app = Chat(feed)

    async def script(pilot: Pilot[None]) -> None:
        panel = app.query_one(GpuPanel)
        for times in (1, 2):
            live = LiveLaunch(LaunchRequest(scale), InterpreterEngine(NANO), feed, max_tokens=999)
            live.start()
            await until(pilot, lambda: live.outcome)  # noqa: B023
            await until(pilot, lambda: len(app.told) == 2 * times)  # noqa: B023
            await until(pilot, lambda: panel.recording.at_head)
        assert panel.recording.view.memory[16] == 200
        assert panel.region.x == 120 - 70
        assert panel.recording.position == panel.recording.head
        count = panel.recording.head
        assert app.told == ["started", count, "started", count]

    drive(app, script, size=(120, 40))


@pytest.mark.parametrize("colour", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_in_a_terminal(colour: bool) -> None:
    source = KERNELS / "sort" / "bitonic_sort.ptx"
    more = {} if colour else {"NO_COLOR": "1"}
    watch = [sys.executable, "-m", "qgpu_run.cli", "watch", str(source)]
    terminal = Terminal([*watch, "--engine", "interpreter", "--at", "300"], **more)
    terminal.until("300 tokens")
    terminal.until("quit")
    terminal.type("1")
    terminal.until("warp 0")
    terminal.type("6")
    terminal.until("runs block")
    terminal.resize(40, 10)
    terminal.until("needs 56 columns")
    terminal.resize(140, 40)
    terminal.until("4 Registers")
    if not colour:
        codes = {cell.fg for row in terminal.screen.buffer.values() for cell in row.values()}
        grey = {code for code in codes if code == "default" or code[:2] == code[2:4] == code[4:]}
        assert codes == grey
    terminal.type(" ")
    terminal.until("ended")
    terminal.type("q")
    assert terminal.end() == 0
    assert b"results: as expected" in terminal.raw


def test_lines_are_text() -> None:
    assert text_of([("a", ""), ("b", "dim")]) == "ab"
