"""The chat line by line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from qgpu_run.chat.app.plain import PlainChat
from qgpu_run.chat.app.session import ChatOptions

from .conftest import Opener, Script, call


def chat(
    opener: Opener, monkeypatch: pytest.MonkeyPatch, *lines: str, options: ChatOptions | None = None
) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    options = options or ChatOptions(engine="interpreter", profile="small")
    return PlainChat(options, opener=opener).run()


def test_lines_in_lines_out(
    opener: Opener,
    model: Script,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    model.turns = ["<think>hm</think>So: " + call("sum([1, 2])"), "Three."]
    lines = [
        "What is 1 + 2?",
        "",
        "/calc 1 / 0",
        "/mod",
        "/panel",
        "/settings theme dark",
        "/settings",
        "/run reduce/dot",
        f"/save {tmp_path}/talk.json",
        "/clear",
        f"/load {tmp_path}/talk.json",
        "/quit",
        "never read",
    ]
    assert chat(opener, monkeypatch, *lines) == 0
    out = capsys.readouterr().out
    for words in (
        "A scripted model.",
        "So: \n  | sum([1, 2])\n  = 3  (1 launch, ",
        "Three.\n",
        "error: division by zero",
        "did you mean /mode?",
        "no panel",
        "no colours",
        "check on",
        "results: as expected",
        "4 messages",
    ):
        assert words in out, (words, out)
    assert "hm" not in out
    assert "never" not in out


def test_no_model(
    opener: Opener, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ChatOptions(model=Path("broken"))
    assert chat(opener, monkeypatch, "Hi.", options=options) == 2
    assert "broken has no GPU" in capsys.readouterr().out


def test_errors_end_nothing(
    opener: Opener,
    model: Script,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model.failure = RuntimeError("torch says no")
    model.turns = ["Here."]
    assert chat(opener, monkeypatch, "Hi.", "Hi.") == 0
    out = capsys.readouterr().out
    assert "error: RuntimeError: torch says no" in out
    assert "Here." in out
