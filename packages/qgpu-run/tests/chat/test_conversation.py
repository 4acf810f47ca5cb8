from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qgpu_run.chat import conversation as conversation_module
from qgpu_run.chat.conversation import MAX_CALLS, Answered, Called, Conversation, Wrote
from qgpu_run.chat.text_model import ChatSettings
from qgpu_run.chat.tool_calls import MalformedCall, Text, ToolCall
from qgpu_run.chat.tools import CallRecord


class Script:
    """A model that writes what it is told to, one character a token."""

    folder = Path("nowhere")
    unk_token_id = None

    def __init__(self, *turns: str, settings: ChatSettings | None = None) -> None:
        self.turns = list(turns)
        self.settings = settings or ChatSettings(tools_in_prompt=False, prompts={})
        self.tokenizer = self
        self.prompts: list[list[dict[str, Any]]] = []
        self.tools: list[list[dict[str, Any]]] = []

    def write(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], limit: int
    ) -> Iterator[int]:
        self.prompts.append([dict(message) for message in messages])
        self.tools.append(tools)
        turn = self.turns.pop(0)
        turn = turn.replace("<tool_call>", "\x01").replace("</tool_call>", "\x02")
        yield from map(ord, turn[:limit])

    def convert_tokens_to_ids(self, names: list[str]) -> list[int]:
        return [{"<tool_call>": 1, "</tool_call>": 2}.get(name, 0x10FFFF) for name in names]

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        return "".join(map(chr, ids))


class Echo:
    """Tools that answer with the expression."""

    def __init__(self) -> None:
        self.calls: list[ToolCall | MalformedCall] = []

    def run(self, call: ToolCall | MalformedCall, mode: str) -> CallRecord:
        self.calls.append(call)
        if isinstance(call, MalformedCall):
            return CallRecord("", {}, f"error: {call.reason}", True, None, (), 0.0)
        response = f"value of {call.arguments['expression']}"
        return CallRecord(call.name, dict(call.arguments), response, False, True, (), 0.0)


def call(expression: str) -> str:
    return (
        f"<tool_call>\n<function=calculate>\n<parameter=expression>\n{expression}\n"
        "</parameter>\n</function>\n</tool_call>"
    )


def test_a_call_and_its_answer() -> None:
    model, tools = Script(call("1 + 2"), "It is 3."), Echo()
    talk = Conversation(model, tools)
    events = list(talk.reply("What is 1 + 2?"))
    assert [type(e) for e in events if not isinstance(e, Wrote)] == [Called, Answered]
    answer = events[-1]
    assert isinstance(answer, Answered)
    assert (answer.text, answer.stopped, len(answer.calls)) == ("It is 3.", None, 1)
    assert [m["role"] for m in talk.messages] == ["user", "assistant", "tool", "assistant"]
    # The second prompt has the call and what came of it.
    assert model.prompts[1][-1] == {"role": "tool", "content": "value of 1 + 2"}
    assert model.prompts[1][-2]["tool_calls"][0]["function"]["arguments"] == {"expression": "1 + 2"}
    assert "".join(
        e.piece.text for e in events if isinstance(e, Wrote) and isinstance(e.piece, Text)
    )


def test_what_comes_behind_a_call_is_not_written() -> None:
    model = Script("First: " + call("1") + call("2") + "and more", "done")
    answer = list(Conversation(model, tools := Echo()).reply("?"))[-1]
    assert isinstance(answer, Answered)
    assert answer.text == "First: \ndone".replace(": \n", ":\n")
    assert len(tools.calls) == 1


def test_a_model_that_calls_forever_is_stopped() -> None:
    talk = Conversation(Script(*[call("1")] * (MAX_CALLS + 1)), Echo())
    answer = list(talk.reply("?"))[-1]
    assert isinstance(answer, Answered)
    assert answer.stopped == "calls"
    assert len(answer.calls) == MAX_CALLS


def test_a_turn_that_does_not_end_is_stopped(monkeypatch: Any) -> None:
    monkeypatch.setattr(conversation_module, "MAX_TOKENS", 10)
    answer = list(Conversation(Script("x" * 50), Echo()).reply("?"))[-1]
    assert isinstance(answer, Answered)
    assert (answer.text, answer.stopped) == ("x" * 10, "tokens")


def test_a_malformed_call_goes_back_to_the_model() -> None:
    model = Script("<tool_call>1 + 2</tool_call>", call("1 + 2"), "3")
    answer = list(Conversation(model, Echo()).reply("?"))[-1]
    assert isinstance(answer, Answered)
    assert answer.calls[0].failed
    assert not answer.calls[1].failed
    assert model.prompts[1][-1]["content"].startswith("error: ")


def test_cancelling_keeps_what_was_said() -> None:
    talk = Conversation(Script("a long answer", "again"), Echo())
    written: list[str] = []
    talk.cancelled = lambda: len(written) >= 3
    for event in talk.reply("?"):
        if isinstance(event, Wrote):
            written.append("piece")
        last = event
    assert isinstance(last, Answered)
    assert last.stopped == "cancelled"
    assert talk.messages[-1] == {"role": "assistant", "content": last.text}
    talk.cancelled = lambda: False
    assert isinstance(list(talk.reply("and now?"))[-1], Answered)


def test_modes_have_their_prompts_and_tools() -> None:
    model = Script("a", "b", settings=ChatSettings())
    talk = Conversation(model, Echo())
    list(talk.reply("?"))
    assert model.prompts[0][0]["role"] == "system"
    assert model.tools[0][0]["function"]["name"] == "calculate"
    own = ChatSettings(tools_in_prompt=False, prompts={"advanced": "Write CUDA."})
    model = Script("a", settings=own)
    talk = Conversation(model, Echo(), "advanced")
    list(talk.reply("?"))
    assert model.prompts[0][0]["content"] == "Write CUDA."
    assert model.tools[0] == []
