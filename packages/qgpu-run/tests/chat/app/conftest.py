"""A chat with a scripted model, and the interpreter as its GPU."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import qgpu
from qgpu_run.chat.app.chat_app import ChatApp
from qgpu_run.chat.app.history import History
from qgpu_run.chat.app.session import ChatOptions
from qgpu_run.chat.app.transcript import Block
from qgpu_run.chat.app.watch import LaunchWatch
from qgpu_run.chat.conversation import Conversation
from qgpu_run.chat.text_model import ChatSettings
from qgpu_run.chat.tools import Tools
from qgpu_run.errors import ModelError
from textual.pilot import Pilot

KERNELS = Path(__file__).resolve().parents[5] / "kernels"


def call(expression: str) -> str:
    return (
        f"<tool_call>\n<function=calculate>\n<parameter=expression>\n{expression}\n"
        "</parameter>\n</function>\n</tool_call>"
    )


def cuda(source: str, launch: str) -> str:
    return (
        f"<tool_call>\n<function=run_cuda>\n<parameter=source>\n{source}\n</parameter>\n"
        f"<parameter=launch>\n{launch}\n</parameter>\n</function>\n</tool_call>"
    )


class Script:
    """A model that writes what it is told to, one character a token.

    Attributes:
        gate: tokens wait for it.
        failure: raised instead of the next turn.
    """

    unk_token_id = None

    def __init__(self, *turns: str, note: str = "A scripted model.") -> None:
        self.turns = list(turns)
        self.folder = Path("nowhere")
        self.settings = ChatSettings(tools_in_prompt=False, prompts={}, note=note)
        self.tokenizer = self
        self.gate = threading.Event()
        self.gate.set()
        self.failure: Exception | None = None
        self.seen: list[list[dict[str, Any]]] = []

    def write(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], limit: int
    ) -> Iterator[int]:
        self.seen.append([dict(message) for message in messages])
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        turn = self.turns.pop(0) if self.turns else "nothing"
        for old, new in (("<tool_call>", "\x01"), ("</tool_call>", "\x02"), ("<think>", "\x03")):
            turn = turn.replace(old, new)
        for character in turn.replace("</think>", "\x04"):
            self.gate.wait(20)
            yield ord(character)

    def convert_tokens_to_ids(self, names: list[str]) -> list[int]:
        return [["<tool_call>", "</tool_call>", "<think>", "</think>"].index(n) + 1 for n in names]

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        return "".join(map(chr, ids))


class Opener:
    """Opens scripted models; folders called `broken` hold none."""

    def __init__(self, model: Script) -> None:
        self.model = model
        self.opened: list[ChatOptions] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(
        self, options: ChatOptions, watch: LaunchWatch, say: Callable[[str], None]
    ) -> Conversation:
        click.echo("loading weights", err=True)
        say("reading weights")
        self.gate.wait(20)
        if options.model is not None and options.model.name == "broken":
            raise ModelError(f"{options.model} has no GPU: it is not merged")
        self.opened.append(options)
        device = qgpu.Device(
            "small",
            "interpreter",
            check=options.check,
            wrap_engine=watch.wrap,
            around_launch=watch.around,
        )
        return Conversation(self.model, Tools(device), options.mode)


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("COLORFGBG", raising=False)


@pytest.fixture
def model() -> Script:
    return Script()


@pytest.fixture
def opener(model: Script) -> Opener:
    return Opener(model)


class Driver:
    """An app that runs, and what a user does with it."""

    def __init__(self, app: ChatApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def until(self, true: Callable[[], object]) -> None:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if true():
                return
            await self.pilot.pause(0.02)
        raise AssertionError(f"it never came to that:\n{self.text}")

    async def ready(self) -> None:
        await self.until(lambda: self.app.session.ready and not self.app.busy)
        await self.pilot.pause(0.05)

    async def type(self, text: str) -> None:
        self.app.composer.text = text
        await self.pilot.pause()

    async def send(self, text: str) -> None:
        await self.type(text)
        await self.pilot.press("escape" if self.app.composer.completions else "end", "enter")

    async def ask(self, text: str) -> str:
        """Sends and waits for the end; what has come."""
        before = len(self.app.transcript.blocks)
        await self.send(text)
        await self.until(lambda: not self.app.busy)
        await self.pilot.pause(0.05)
        return "\n".join(map(block_text, self.app.transcript.blocks[before:]))

    async def note(self, text: str) -> str:
        """Sends, and does not wait for what runs; what has come."""
        before = len(self.app.transcript.blocks)
        await self.send(text)
        await self.pilot.pause(0.05)
        return "\n".join(map(block_text, self.app.transcript.blocks[before:]))

    @property
    def state(self) -> str:
        """The line below the field."""
        return "".join(part for part, _ in self.app._status(80))

    @property
    def text(self) -> str:
        return "\n".join(map(block_text, self.app.transcript.blocks))


def block_text(block: Block) -> str:
    """What a block shows, without its looks."""
    lines = [block.render_line(y) for y in range(block.size.height)]
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in lines)


@pytest.fixture
def drive(opener: Opener, tmp_path: Path) -> Callable[..., None]:
    """Runs an app of a size through a script."""

    def run(
        script: Callable[[Driver], Awaitable[None]],
        size: tuple[int, int] = (80, 24),
        options: ChatOptions | None = None,
        **more: Any,
    ) -> None:
        async def go() -> None:
            app = ChatApp(
                options or ChatOptions(engine="interpreter", profile="small"),
                opener=opener,
                history=History(tmp_path / "history.jsonl"),
                theme_name="dark",
                **more,
            )
            async with app.run_test(size=size) as pilot:
                await script(Driver(app, pilot))

        asyncio.run(go())

    return run
