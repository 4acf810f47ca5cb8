from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qgpu_run.chat.tool_calls import (
    MalformedCall,
    Piece,
    ReplyParser,
    Text,
    Thought,
    ToolCall,
    parse_call,
)

TAGS = {"<tool_call>": 1, "</tool_call>": 2, "<think>": 3, "</think>": 4}


class Bytes:
    """A tokenizer of bytes, with tokens for the tags."""

    unk_token_id = None

    def convert_tokens_to_ids(self, names: list[str]) -> list[int]:
        return [TAGS[name] for name in names]

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        names = {token: name.encode() for name, token in TAGS.items()}
        parts = [names[i] if i in names else bytes([i - 10]) for i in ids]
        return b"".join(parts).decode("utf-8", "replace")

    def encode(self, text: str) -> list[int]:
        return [byte + 10 for byte in text.encode()]


def tokens(*parts: str) -> list[int]:
    """Parts that are tags become their tokens, all else bytes."""
    out: list[int] = []
    for part in parts:
        out += [TAGS[part]] if part in TAGS else Bytes().encode(part)
    return out


def read(ids: list[int]) -> list[Piece]:
    """All pieces, neighbouring text put together."""
    parser = ReplyParser(Bytes())
    found: list[Piece] = []
    for piece in [p for i in ids for p in parser.feed(i)] + parser.finish():
        last: Any = found[-1] if found else None
        if isinstance(piece, Text | Thought) and type(last) is type(piece):
            found[-1] = type(piece)(last.text + piece.text)
        else:
            found.append(piece)
    return found


CALL = "\n<function=calculate>\n<parameter=expression>\n1 + 2\n</parameter>\n</function>\n"


def test_text_then_a_call() -> None:
    call = ToolCall("calculate", {"expression": "1 + 2"})
    assert read(tokens("Well: ", "<tool_call>", CALL, "</tool_call>")) == [Text("Well: "), call]


def test_a_call_in_a_thought_is_none() -> None:
    pieces = read(tokens("<think>", "I could ", "<tool_call>", CALL, "</think>", "Hello"))
    assert [type(piece) for piece in pieces] == [Thought, Text]
    assert pieces[1] == Text("Hello")


def test_tags_written_as_letters_are_text() -> None:
    text = "the tag is spelled <tool_call>"
    assert read(Bytes().encode(text)) == [Text(text)]


def test_a_character_of_several_tokens_comes_whole() -> None:
    parser = ReplyParser(Bytes())
    first, *rest = Bytes().encode("é")
    assert parser.feed(first) == []
    assert parser.feed(rest[0]) == [Text("é")]


def test_a_call_without_an_end() -> None:
    (piece,) = read(tokens("<tool_call>", CALL))
    assert isinstance(piece, MalformedCall)
    assert "</tool_call>" in piece.reason


def test_values_keep_their_lines() -> None:
    source = "__global__ void f(int* x) {\n  x[0] = 1;\n}"
    text = f"<function=run_cuda>\n<parameter=source>\n{source}\n</parameter>\n"
    text += "<parameter=launch>\nf<<<1, 1>>>(x[1])\n</parameter>\n</function>"
    call = parse_call(text)
    assert call == ToolCall("run_cuda", {"source": source, "launch": "f<<<1, 1>>>(x[1])"})
    assert call.message()["function"]["name"] == "run_cuda"


@pytest.mark.parametrize(
    "text",
    ["", "calculate(1 + 2)", "<function=f>", "<function=f>\nx\n</function>", '{"name": "f"}'],
)
def test_what_is_no_call(text: str) -> None:
    assert isinstance(parse_call(text), MalformedCall)


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(parse_call(text), ToolCall | MalformedCall)


@given(st.lists(st.integers(1, 4) | st.integers(10, 265), max_size=80))
def test_any_tokens_are_read(ids: list[int]) -> None:
    read(ids)
