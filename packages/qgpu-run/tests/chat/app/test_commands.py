"""Commands, saved conversations, history, the worker: without a screen."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from qgpu_run.chat.app.command import complete, parse_command
from qgpu_run.chat.app.commands import COMMANDS, commands_table
from qgpu_run.chat.app.history import History, history_file
from qgpu_run.chat.app.kernel_files import find_kernel, kernel_files
from qgpu_run.chat.app.saved_chat import SavedChat
from qgpu_run.errors import RequestError

CHAT = Path(__file__).resolve().parents[5] / "docs" / "chat.md"


def test_the_docs_list_the_commands() -> None:
    assert commands_table() in CHAT.read_text("utf-8")


def test_lines_are_commands() -> None:
    command, argument = parse_command("/calc  1 +\n2 ", COMMANDS)
    assert (command.name, argument) == ("calc", "1 + 2")
    assert parse_command("/model", COMMANDS)[1] == ""
    for line, words in (("/kernel", "/kernels"), ("/xyz", "/help"), ("/run", "write /run FILE")):
        with pytest.raises(RequestError, match=words):
            parse_command(line, COMMANDS)


def test_completion_of_commands(tmp_path: Path) -> None:
    assert len(complete("/", COMMANDS)) == len(COMMANDS)
    assert [c.text for c in complete("/he", COMMANDS)] == ["/help"]
    assert complete("he", COMMANDS) == []
    assert complete("/he\n", COMMANDS) == []
    assert complete("/none x", COMMANDS) == []
    assert next(c.text for c in complete("/settings th", COMMANDS)) == "/settings theme dark"
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "shown").write_text("")
    assert [c.text for c in complete(f"/load {tmp_path}/", COMMANDS)] == [f"/load {tmp_path}/shown"]
    assert complete(f"/model {tmp_path}/", COMMANDS) == []
    assert complete("/load ~nobody-of-that-name/", COMMANDS) == []


def test_ready_made_kernels() -> None:
    assert len(kernel_files()) > 50
    assert find_kernel("dot") == find_kernel("reduce/dot") != Path("dot")
    assert find_kernel("none") == Path("none")


def test_a_conversation_comes_back(tmp_path: Path) -> None:
    function = {"name": "calculate", "arguments": {"expression": "1 + 1"}}
    messages = (
        {"role": "user", "content": "Ünï\n?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "function": function}],
        },
        {"role": "tool", "content": "2"},
    )
    saved = SavedChat("/models/mine", "advanced", messages)
    saved.write(tmp_path / "talk.json")
    assert SavedChat.read(tmp_path / "talk.json") == saved


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no JSON"),
        ("[1]", "no JSON object"),
        ("{}", "qgpu_chat"),
        ({"qgpu_chat": 2}, "qgpu_chat"),
        ({"model": 3}, "model is 3"),
        ({"mode": "fast"}, "mode"),
        ({"messages": {}}, "messages"),
        ({"messages": ["hi"]}, "message 1 is no object"),
        ({"messages": [{"role": "system", "content": ""}]}, "role"),
        ({"messages": [{"role": "user"}]}, "content"),
        ({"messages": [{"role": "assistant", "content": "", "tool_calls": [1]}]}, "tool_calls"),
        ({"messages": [{"role": "assistant", "content": "", "tool_calls": [{}]}]}, "function"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_files_that_hold_no_conversation(tmp_path: Path, content: object, words: str) -> None:
    path = tmp_path / "talk.json"
    if isinstance(content, dict):
        whole = {"qgpu_chat": 1, "model": None, "mode": "normal", "messages": []}
        content = json.dumps({**whole, **content} if content else content)
    path.write_text(str(content))
    with pytest.raises(RequestError, match=words):
        SavedChat.read(path)


def test_places_that_hold_no_conversation(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in (("none", "missing"), ("", "folder"), ("pipe", "pipe")):
        with pytest.raises(RequestError, match=words):
            SavedChat.read(tmp_path / name)


def test_a_conversation_takes_no_other_files_place(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "kernel.cu").write_text("__global__ void f() {}")
    (tmp_path / "empty").write_text("")
    saved = SavedChat(None, "normal", ())
    for name in ("", "pipe", "kernel.cu"):
        with pytest.raises(RequestError, match="there already"):
            saved.write(tmp_path / name)
    assert (tmp_path / "kernel.cu").read_text() == "__global__ void f() {}"
    for _ in range(2):
        saved.write(tmp_path / "empty")
    assert SavedChat.read(tmp_path / "empty") == saved


def test_halves_of_characters(tmp_path: Path) -> None:
    half = SavedChat(None, "normal", ({"role": "user", "content": "a\udce9"},))
    with pytest.raises(UnicodeEncodeError):
        half.write(tmp_path / "talk.json")
    assert list(tmp_path.iterdir()) == []
    whole = {"qgpu_chat": 1, "model": None, "mode": "normal", "messages": half.messages}
    (tmp_path / "talk.json").write_text(json.dumps(whole))
    assert SavedChat.read(tmp_path / "talk.json").messages[0]["content"] == "a?"


def test_history_is_private_and_kept() -> None:
    path = history_file()
    for text in ("one", "two\nlines", "two\nlines", "", "x" * 1_000_000):
        History(path).add(text)
    assert History(path).entries == ["one", "two\nlines"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_history_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("".join(f"{json.dumps(str(number))}\n" for number in range(3000)))
    assert History(path).entries[0] == "2000"
    assert len(path.read_text().splitlines()) == 1000


def test_history_that_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = History(tmp_path / "file" / "history.jsonl")
    history.add("one")
    assert history.older("draft") == "one"
    assert history.older("one") is None
    assert history.newer() == "draft"
    assert history.newer() is None
