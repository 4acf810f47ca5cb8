from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import qgpu
from click.testing import CliRunner, Result
from qgpu_run.chat import open_conversation as opening
from qgpu_run.chat.conversation import Conversation
from qgpu_run.chat.tools import Tools
from qgpu_run.cli import main

from .test_conversation import Script, call


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path | None]:
    """The models that were asked for; all of them add 12 and 30."""
    models: list[Path | None] = []

    def open_conversation(model: Path | None, **_: Any) -> Conversation:
        models.append(model)
        device = qgpu.Device(profile="small", engine="interpreter", check=True)
        return Conversation(Script(call("12 + 30"), "It is 42."), Tools(device))

    monkeypatch.setattr(opening, "open_conversation", open_conversation)
    return models


def ask(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["ask", *arguments], input=stdin)


def test_a_question(opened: list[Path | None]) -> None:
    result = ask("What is 12 + 30?")
    assert (result.exit_code, result.stdout) == (0, "It is 42.\n")
    assert "> 12 + 30" in result.stderr
    assert "= 42" in result.stderr
    assert opened == [None]


def test_json(opened: list[Path | None]) -> None:
    data = json.loads(ask("-", "--json", stdin="What is 12 + 30?\n").stdout)
    assert data["answer"] == "It is 42."
    assert [(c["expression"], c["response"], c["exact"]) for c in data["calls"]] == [
        ("12 + 30", "42", True)
    ]
    assert opened == [None]


def test_the_model_may_be_named_in_two_ways_but_once(opened: list[Path | None]) -> None:
    assert ask("folder", "What is 12 + 30?").exit_code == 0
    assert ask("--model", "folder", "What is 12 + 30?").exit_code == 0
    assert opened == [Path("folder"), Path("folder")]
    result = ask("--model", "folder", "other", "What is 12 + 30?")
    assert result.exit_code == 2
    assert "named twice" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("a", "b", "c"), "put the question in quotes"), ((" ",), "the question is empty")],
)
def test_wrong_arguments(
    opened: list[Path | None], arguments: tuple[str, ...], message: str
) -> None:
    result = ask(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert opened == []
