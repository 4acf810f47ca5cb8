from __future__ import annotations

from collections.abc import Callable

from .conftest import Driver, Script, call


def test_a_question_a_call_and_an_answer(drive: Callable[..., None], model: Script) -> None:
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
