"""The chat in Textual's pilot, with a scripted model and the interpreter as its GPU."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from qgpu_run.chat.app.chat_app import ChatApp
from qgpu_run.chat.app.session import ChatOptions
from textual.widgets import Static

from .conftest import Driver, Opener, Script, call, cuda

Drive = Callable[..., None]

KERNEL = """__global__ void f(const int* x, int* out) {
  out[threadIdx.x] = x[threadIdx.x] + 1;
}"""

ENDLESS = "__global__ void f(int* x) { while (x[0] == 0) x[1]++; }"


def test_a_question_a_call_and_an_answer(drive: Drive, model: Script) -> None:
    model.turns = ["<think>hm</think>Let me see: " + call("sum([1, 2]) * 3"), "It is [9]."]

    async def script(chat: Driver) -> None:
        await chat.ready()
        assert "A scripted model." in chat.text
        shown = await chat.ask("What is (1 + 2) * 3?")
        for words in ("What is (1 + 2) * 3?", "hm", "Let me see:", "sum([1, 2]) * 3", "= 9"):
            assert words in shown, shown
        assert "2 launches" in shown
        assert "exact" in shown
        assert "It is [9]." in shown

    drive(script)


def test_a_reply_is_seen_as_it_is_written(drive: Drive, model: Script) -> None:
    model.turns = ["The first words"]

    async def script(chat: Driver) -> None:
        await chat.ready()
        model.gate.clear()
        await chat.send("Well?")
        assert chat.app.busy
        await chat.until(lambda: "working" in chat.state)
        # Nothing is lost of what is sent too early.
        await chat.send("And?")
        assert chat.app.composer.text == "And?"
        model.gate.set()
        await chat.until(lambda: "The first words" in chat.text)

    drive(script)


def test_kernels_of_the_models_own(drive: Drive, model: Script) -> None:
    model.turns = [cuda(KERNEL, "f<<<1, 3>>>([1, 2, 3], out[3])"), "Done.\n```cuda\nint a;\n```"]

    async def script(chat: Driver) -> None:
        await chat.ready()
        assert "mode advanced" in await chat.ask("/mode advanced")
        shown = await chat.ask("Add 1.")
        assert "__global__ void f(const int* x, int* out) {" in shown
        assert "= out = [2, 3, 4]" in shown
        assert "int a;" in shown
        assert "```" not in shown

    drive(script)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (call("1 / 0"), "division by zero"),
        (call("99999 * 99999"), "overflow"),
        (call("(" * 3000), "error: "),
        (call("sum([1"), "error: "),
        ("<tool_call>1 + 1</tool_call>", "a call is"),
        (cuda(KERNEL, "f<<<1, 3>>>(1)"), "there is no tool 'run_cuda'"),
    ],
)
def test_calls_that_are_wrong(drive: Drive, model: Script, written: str, words: str) -> None:
    model.turns = [written, "I see.", call("1 + 1"), "Two."]

    async def script(chat: Driver) -> None:
        await chat.ready()
        shown = await chat.ask("Try.")
        assert words in shown
        assert "I see." in shown
        assert "= 2" in await chat.ask("Again.")

    drive(script)


@pytest.mark.parametrize(
    "failure",
    [RuntimeError("CUDA error\nmore"), OSError(5, "gone", "model.safetensors"), MemoryError()],
)
def test_an_error_while_writing(drive: Drive, model: Script, failure: Exception) -> None:
    model.failure = failure
    model.turns = ["Here I am."]

    async def script(chat: Driver) -> None:
        await chat.ready()
        shown = await chat.ask("Are you there?")
        assert any(words in shown for words in ("CUDA error", "gone", "memory"))
        assert "more\n" not in shown
        assert chat.app.session.talk.messages == []
        assert "Here I am." in await chat.ask("And now?")

    drive(script)


def test_a_pass_that_cannot_be_ended(drive: Drive, model: Script) -> None:
    model.turns = ["x"]

    async def script(chat: Driver) -> None:
        await chat.ready()
        model.gate.clear()
        await chat.send("Write.")
        await chat.until(lambda: chat.app.busy)
        await chat.pilot.press("ctrl+c")
        assert "stopping" in chat.state
        await chat.pilot.press("ctrl+c")
        assert chat.app.return_code is None
        await chat.pilot.press("ctrl+c")
        assert chat.app.return_code == 0
        model.gate.set()

    drive(script)


def test_names_that_are_no_paths(drive: Drive) -> None:
    async def script(chat: Driver) -> None:
        await chat.ready()
        for command in ("/save", "/load", "/run", "/model"):
            assert await chat.ask(f"{command} a\0/b")
        assert "= 3" in await chat.ask("/calc 1 + 2")

    drive(script)


def test_escape_ends_a_reply(drive: Drive, model: Script) -> None:
    model.turns = ["x" * 500, "Good."]

    async def script(chat: Driver) -> None:
        await chat.ready()
        model.gate.clear()
        await chat.send("Write.")
        await chat.pilot.press("escape")
        model.gate.set()
        await chat.until(lambda: not chat.app.busy)
        await chat.until(lambda: "stopped" in chat.text)
        assert "x" * 500 not in chat.text.replace("\n", "").replace(" ", "")
        assert "Good." in await chat.ask("Go on.")

    drive(script)


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
def test_a_launch_is_ended(drive: Drive, model: Script, key: str) -> None:
    model.turns = [cuda(ENDLESS, "f<<<1, 1>>>(x[2])"), "never read", "Here."]

    async def script(chat: Driver) -> None:
        await chat.ready()
        await chat.send("/mode advanced")
        await chat.send("Loop.")
        await chat.until(lambda: chat.app.session.cancellation.gpu_tokens > 20)
        await chat.pilot.press(key)
        await chat.until(lambda: not chat.app.busy)
        await chat.until(lambda: "stopped" in chat.text)
        assert "error: cancelled" in chat.text
        assert "never read" not in chat.text
        assert "= 3" in await chat.ask("/calc 1 + 2")

    drive(script)


def test_a_launch_that_the_panel_holds_is_ended(drive: Drive, model: Script) -> None:
    async def script(chat: Driver) -> None:
        await chat.ready()
        chat.app.panel.playback.pause()
        await chat.send("/calc 1 + 2")
        await chat.until(lambda: "the panel holds the GPU" in chat.state)
        await chat.pilot.press("f3", "n")
        await chat.until(lambda: chat.app.panel.recording.position > 0)
        await chat.pilot.press("f3")
        await chat.pilot.press("escape")
        await chat.until(lambda: not chat.app.busy)
        await chat.until(lambda: "cancelled" in chat.text)
        chat.app.panel.playback.play()
        assert "= 3" in await chat.ask("/calc 1 + 2")

    drive(script, size=(160, 45))


def test_what_is_sent_while_the_model_loads(drive: Drive, model: Script, opener: Opener) -> None:
    model.turns = ["Hello."]
    opener.gate.clear()

    async def script(chat: Driver) -> None:
        await chat.until(lambda: "reading weights" in chat.state)
        assert "still loading" in await chat.note("/clear")
        await chat.send("Hi.")
        assert "Hi." in chat.text
        opener.gate.set()
        await chat.until(lambda: "Hello." in chat.text)

    drive(script)


def test_a_model_that_does_not_load(drive: Drive) -> None:
    async def script(chat: Driver) -> None:
        await chat.until(lambda: "broken has no GPU" in chat.text)
        assert "there is no model" in await chat.ask("Hi.")
        assert "there is no model" in await chat.ask("/calc 1")
        assert "there is no model" in await chat.ask("/clear")
        assert "on machine 'small'" in await chat.ask("/model stand-in")
        assert "nothing" in await chat.ask("Hi.")

    drive(script, options=ChatOptions(model=Path("broken"), engine="interpreter"))


def test_model(drive: Drive, opener: Opener, tmp_path: Path) -> None:
    for name in ("broken", "good"):
        (tmp_path / name).mkdir()

    async def script(chat: Driver) -> None:
        await chat.ready()
        assert "stand-in on machine 'small', interpreter" in await chat.ask("/model")
        assert "there is no folder" in await chat.ask(f"/model {tmp_path}/none")
        assert "has no GPU" in await chat.ask(f"/model {tmp_path}/broken")
        assert "stand-in" in await chat.ask("/model")
        await chat.ask("/mode advanced")
        await chat.ask("/settings check off")
        assert "good" in (await chat.ask(f"/model {tmp_path}/good")).replace("\n", "")
        assert chat.app.session.mode == "advanced"
        assert opener.opened[-1].check is False

    drive(script)


def test_clear_save_and_load(drive: Drive, model: Script, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    model.turns = [call("2 * 3"), "Six.", call("1 / 0"), "No."]

    async def script(chat: Driver) -> None:
        await chat.ready()
        await chat.ask("Two times three?")
        await chat.ask("One by zero?")
        assert "saved in" in await chat.ask(f"/save {file}")
        saved = json.loads(file.read_text())
        assert (saved["model"], saved["mode"], len(saved["messages"])) == (None, "normal", 8)
        await chat.ask("/clear")
        assert chat.app.transcript.blocks == []
        assert chat.app.session.talk.messages == []
        await chat.ask(f"/load {file}")
        for words in ("Two times three?", "2 * 3", "= 6", "Six.", "division by zero"):
            assert words in chat.text
        assert chat.app.session.talk.messages == saved["messages"]
        assert "cannot write" in await chat.ask(f"/save {tmp_path}/none/talk.json")
        other = tmp_path / "other.json"
        other.write_text(json.dumps({**saved, "model": "/models/mine", "mode": "advanced"}))
        await chat.ask(f"/load {other}")
        assert "/model /models/mine" in chat.text
        assert chat.app.session.mode == "advanced"

    drive(script)


def test_a_conversation_goes_on(drive: Drive, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Ho."}]
    file.write_text(
        json.dumps({"qgpu_chat": 1, "model": None, "mode": "advanced", "messages": messages})
    )

    async def script(chat: Driver) -> None:
        await chat.ready()
        await chat.until(lambda: "Ho." in chat.text)
        assert chat.app.session.mode == "advanced"

    drive(script, options=ChatOptions(engine="interpreter", load=file))


def test_run(drive: Drive, tmp_path: Path) -> None:
    own = tmp_path / "mine.cu"
    own.write_text('extern "C" __global__ void f(int* x) { x[threadIdx.x] += 1; }')
    (tmp_path / "trap.cu").write_text("__global__ void f() { __trap(); }")
    (tmp_path / "wrong.cu").write_text("__global__ void f(int* x) { y; }")

    async def script(chat: Driver) -> None:
        await chat.ready()
        assert "results: as expected" in await chat.ask("/run reduce/dot")
        recording = chat.app.panel.recording
        assert recording.info.kernel == "dot"
        await chat.until(lambda: recording.ended)
        shown = await chat.ask(f"/run {own} --block 3 --arg x=1,2,3")
        assert "x = [2, 3, 4]" in shown
        assert "undefined" in await chat.ask(f"/run {tmp_path}/wrong.cu --block 1 --arg x=1")
        for line, words in (
            (f"/run {own}", "--block"),
            ("/run nowhere.cu", "there is no file nowhere.cu"),
            (f"/run {tmp_path}", "is a folder"),
            ("/run a.cu b.cu", "unexpected extra argument"),
            ("/run a.cu --model x", "No such option"),
            ("/run 'a", "no closing quotation"),
            (f"/run {own} --block 3 --arg x=1", "takes an array"),
            (f"/run {tmp_path}/trap.cu --block 1", "trap in block"),
        ):
            assert words in await chat.ask(line)
        assert "= 3" in await chat.ask("/calc 1 + 2")

    drive(script, size=(120, 40))


def test_other_commands(drive: Drive) -> None:
    async def script(chat: Driver) -> None:
        await chat.ready()
        shown = await chat.ask("/help")
        assert "/settings [NAME VALUE]" in shown
        assert "dot" in await chat.ask("/kernels")
        assert "overflow" in await chat.ask("/calc 2 ** 40")
        assert "did you mean /help?" in await chat.ask("/hlep")
        assert "/help lists all" in await chat.ask("/")
        assert "takes nothing" in await chat.ask("/clear all")
        assert "write /save FILE" in await chat.ask("/save")
        assert "no mode 'fast'" in await chat.ask("/mode fast")
        assert "check on" in await chat.ask("/settings")
        await chat.ask("/settings check off")
        assert "not checked" in chat.state
        assert "not compared" in await chat.ask("/calc 1 + 1")
        await chat.ask("/settings check on")
        assert "exact" in await chat.ask("/calc 1 + 1")
        await chat.ask("/settings theme light")
        assert not chat.app.current_theme.dark
        assert "there is no setting" in await chat.ask("/settings colour red")
        assert "write /settings check on|off" in await chat.ask("/settings check maybe")
        await chat.ask("/settings panel on")
        assert chat.app.panel_shown
        await chat.pilot.press("escape")
        assert not chat.app.panel_shown
        await chat.send("/quit")

    drive(script)


def test_commands_wait_for_the_model(drive: Drive, model: Script) -> None:
    async def script(chat: Driver) -> None:
        await chat.ready()
        model.gate.clear()
        await chat.send("Hm?")
        for line in ("/clear", "/calc 1", "/settings check off"):
            assert "Escape" in await chat.note(line) or "while" in chat.text
        assert "/help" in await chat.note("/help")
        model.gate.set()
        await chat.until(lambda: not chat.app.busy)

    drive(script)


def test_completion(drive: Drive, tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text("")
    (tmp_path / "kernels").mkdir()

    async def script(chat: Driver) -> None:
        await chat.ready()
        composer, press = chat.app.composer, chat.pilot.press
        await press("/", "m", "o")
        assert [c.text for c in composer.completions] == ["/mode ", "/model "]
        await press("down", "down", "up", "tab")
        assert composer.text == "/model "
        await chat.type("/mode a")
        await press("tab")
        assert composer.text == "/mode advanced"
        assert composer.completions == []
        await press("enter")
        await chat.until(lambda: "mode advanced" in chat.text)
        await chat.type(f"/run {tmp_path}/ker")
        found = [c.text for c in composer.completions]
        assert found == [f"/run {tmp_path}/kernel.cu", f"/run {tmp_path}/kernels/"]
        await chat.type("/run reduce/do")
        await press("tab")
        assert composer.text == "/run reduce/dot"
        await chat.type("/")
        await press("escape")
        assert composer.completions == []
        assert composer.text == "/"
        await chat.type("/load /nowhere/at/all")
        await press("tab")
        assert composer.text == "/load /nowhere/at/all"
        # A choice is taken, not sent.
        await chat.type("/settings theme ")
        await press("down", "enter")
        assert composer.text == "/settings theme light"

    drive(script)


def test_lines_and_history(drive: Drive, tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('"older"\nnonsense\n{"a": 1}\n')

    async def script(chat: Driver) -> None:
        await chat.ready()
        composer, press = chat.app.composer, chat.pilot.press
        await press("a", "ctrl+j", "b", "alt+enter", "c", "shift+enter", "d", "enter")
        await chat.until(lambda: "nothing" in chat.text)
        assert chat.app.session.talk.messages[0]["content"] == "a\nb\nc\nd"
        assert composer.text == ""
        await press("n", "e", "w", "up")
        assert composer.text == "a\nb\nc\nd"
        await press("up", "up", "up", "up")
        assert composer.text == "older"
        await press("up", "down")
        assert composer.text == "a\nb\nc\nd"
        await press("down")
        assert composer.text == "new"
        await press("ctrl+c")
        assert composer.text == ""
        await press("enter")

    drive(script)
    assert (tmp_path / "history.jsonl").read_text().endswith('"a\\nb\\nc\\nd"\n')


def test_leaving(drive: Drive) -> None:
    async def twice(chat: Driver) -> None:
        await chat.ready()
        await chat.pilot.press("ctrl+c")
        assert chat.app.return_code is None
        await chat.pilot.press("ctrl+c")
        assert chat.app.return_code == 0

    async def end_of_input(chat: Driver) -> None:
        await chat.ready()
        await chat.type("a")
        await chat.pilot.press("ctrl+d")
        assert chat.app.return_code is None
        await chat.pilot.press("backspace", "ctrl+d")
        assert chat.app.return_code == 0

    drive(twice)
    drive(end_of_input)


def test_the_panel_beside_the_chat(drive: Drive) -> None:
    async def script(chat: Driver) -> None:
        await chat.ready()
        app: ChatApp = chat.app
        assert app.panel_shown
        assert app.panel.region.x > 60
        await chat.ask("/calc sum([1, 2]) + 3")
        recording = app.panel.recording
        await chat.until(lambda: recording.ended and recording.at_head)
        await chat.pilot.press("f3", "home")
        assert recording.position == 0
        await chat.pilot.press("n", "f3")
        assert recording.position > 0
        assert app.composer.field.has_focus
        await chat.ask("/panel")
        assert not app.panel_shown
        # The picture was stopped, and with it the model; a hidden one stops nothing.
        assert "= 2" in await chat.ask("/calc 1 + 1")
        await chat.pilot.resize_terminal(100, 30)
        await chat.pilot.press("f2")
        assert app.panel.region.width == 100
        await chat.pilot.press("f2")
        assert not app.panel_shown
        assert app.composer.field.has_focus
        await chat.pilot.resize_terminal(160, 40)
        await chat.pilot.press("f2")
        assert app.panel_shown

    drive(script, size=(160, 45))


def test_every_size(drive: Drive, model: Script) -> None:
    model.turns = [call("sum([1, 2])"), "Three. " * 60]

    async def script(chat: Driver) -> None:
        await chat.ready()
        await chat.ask("A long question? " * 10)
        for width, height in ((80, 24), (200, 60), (40, 10), (39, 24), (80, 9), (1, 1), (80, 24)):
            await chat.pilot.resize_terminal(width, height)
            await chat.pilot.pause(0.05)
            tiny = width < 40 or height < 10
            small = chat.app.query_one("#small", Static)
            assert small.display == tiny
            if not tiny:
                field = chat.app.composer.field
                assert field.region.bottom <= height - 2
                assert chat.app.transcript.region.height >= 3
                assert field.has_focus
        assert "= 3" in await chat.ask("/calc 1 + 2")

    drive(script)


def test_no_panel(drive: Drive) -> None:
    async def script(chat: Driver) -> None:
        await chat.ready()
        assert not chat.app.panel_shown

    drive(script, size=(160, 45), panel=False)


def test_the_end_leaves_no_launch_running(drive: Drive, model: Script) -> None:
    model.turns = [cuda(ENDLESS, "f<<<1, 1>>>(x[2])")]

    async def script(chat: Driver) -> None:
        await chat.ready()
        await chat.send("/mode advanced")
        await chat.send("Loop.")
        await chat.until(lambda: chat.app.session.cancellation.gpu_tokens > 20)
        worker.append(chat.app._worker)
        chat.app.quit()

    worker: list[object] = []
    drive(script)
    for _ in range(200):
        if not worker[0].busy:
            break
        threading.Event().wait(0.02)
    assert not worker[0].busy


def test_control_characters_do_not_reach_the_terminal(drive: Drive, model: Script) -> None:
    model.turns = ["a\x1b[31mb\x07c [bold]d[/bold]"]

    async def script(chat: Driver) -> None:
        await chat.ready()
        shown = await chat.ask("[red]Say it.[/red] \\[")
        assert "\x1b" not in shown
        assert "[bold]d[/bold]" in shown
        assert "[red]Say it.[/red] \\[" in shown

    drive(script)
