"""Launches through an engine that only exchanges tokens; the server is a mock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import numpy as np
import pytest
import qgpu
import qgpu_run.server.find_machine as find_machine_module
from qgpu_isa.errors import TokenError
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import NANO, SMALL, MachineConfig
from qgpu_isa.token_names import TOKEN_NAME, named_token, token_name
from qgpu_isa.vocabulary import TokenClass, vocabulary
from qgpu_run.engines.checked_engine import CheckedEngine
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.engines.server_engine import ServerEngine
from qgpu_run.errors import ForeignTokenError, RequestError, ServerError
from qgpu_run.launch import run_on_engine
from qgpu_run.launch_request import LaunchRequest, OutputArray
from qgpu_run.run_request import run_request
from qgpu_run.server.client import ServerClient
from qgpu_run.server.find_machine import find_machine
from qgpu_run.session import Session

URL = "http://gpu.test"


class MockServer:
    """Answers as a server would whose model is right.

    Attributes:
        prompts: what was asked, less what asks for the machine.
        change: what becomes of the answer's pieces.
        named: whether its tokenizer knows names.
    """

    def __init__(self, config: MachineConfig = NANO) -> None:
        self.config = config
        self.vocab = vocabulary(config)
        self.prompts: list[list[int]] = []
        self.change: Callable[[list[str]], list[str]] = lambda pieces: pieces
        self.named = True

    def client(self, **options: Any) -> ServerClient:
        return ServerClient(URL, transport=httpx2.MockTransport(self.handle), **options)

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/v1/models":
            return httpx2.Response(200, json={"data": [{"id": "gpu"}]})
        assert request.url.path == "/v1/completions"
        body = json.loads(request.content)
        assert body["temperature"] == 0
        assert body["stream"] is True
        return httpx2.Response(200, content=self.events(body))

    def events(self, body: dict[str, Any]) -> Iterator[bytes]:
        names = [match[0] for match in TOKEN_NAME.finditer(body["prompt"])]
        tokens = [t for name in names if self.named and (t := self.token(name)) is not None]
        length = len(tokens) if len(tokens) == len(names) else len(body["prompt"])
        finish = "length"
        if body["max_tokens"] > 1:
            self.prompts.append(tokens)
            pieces, finish = self.write(tokens, body["max_tokens"])
            for piece in self.change(pieces):
                yield _event({"choices": [{"index": 0, "text": piece}]})
        last = {"index": 0, "text": "", "finish_reason": finish}
        yield _event({"choices": [last], "usage": {"prompt_tokens": length}})
        yield b"data: [DONE]\n\n"

    def token(self, name: str) -> int | None:
        try:
            return self.vocab.encode(named_token(name))
        except TokenError:
            return None

    def write(self, tokens: list[int], most: int) -> tuple[list[str], str]:
        engine = InterpreterEngine(self.config)
        token, pieces = engine.feed(tokens).token, list[str]()
        while True:
            found = self.vocab.decode(token)
            pieces.append(token_name(found))
            if found.cls in (TokenClass.END, TokenClass.FAULT):
                return pieces, "stop"
            if len(pieces) == most:
                return pieces, "length"
            token = engine.feed([token]).token


def _event(data: object) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


@pytest.fixture
def server() -> MockServer:
    return MockServer()


def request_of(launch: Launch) -> LaunchRequest:
    return LaunchRequest(launch, (OutputArray("words", "s32", 64, 6),))


def test_a_launch_of_two_ctas_takes_three_requests(server: MockServer, scale: Launch) -> None:
    engine = ServerEngine(server.client(), NANO)
    wanted = run_on_engine(scale, InterpreterEngine(NANO))
    outcome = run_request(request_of(scale), engine, check=True)
    assert outcome.problems == []
    assert outcome.exact is True
    assert outcome.outputs == {"words": [200, 210, 220, 230, 240, 0]}
    assert outcome.tokens == wanted.decoded_tokens
    assert outcome.setup_tokens == wanted.setup_tokens
    assert outcome.requests == len(server.prompts) == 3
    assert outcome.prompt_tokens == sum(map(len, server.prompts))
    first, second, third = server.prompts
    assert second[: len(first) + len(wanted.ctas[0])] == [*first, *wanted.ctas[0]]
    assert third[: len(second)] == second
    assert outcome.read_back_tokens
    again = run_request(request_of(scale), InterpreterEngine(NANO), read_back=True)
    assert again.outputs == outcome.outputs
    assert again.read_back_tokens == outcome.read_back_tokens
    assert again.requests is None


def test_long_answers_take_more_requests(server: MockServer, scale: Launch) -> None:
    outcome = run_request(request_of(scale), ServerEngine(server.client(), NANO, max_tokens=5))
    assert outcome.outputs == {"words": [200, 210, 220, 230, 240, 0]}
    assert outcome.requests is not None
    assert outcome.requests > 6


def test_pieces_may_be_cut_anywhere(server: MockServer, scale: Launch) -> None:
    server.change = lambda pieces: list("".join(pieces))
    outcome = run_request(request_of(scale), ServerEngine(server.client(), NANO), check=True)
    assert outcome.exact is True


def test_launches_one_after_the_other(server: MockServer, scale: Launch) -> None:
    session = Session(CheckedEngine(ServerEngine(server.client(), NANO)))
    for times in (1, 2):
        trace, words = session.run(request_of(scale), wanted=[range(16, 18)])
        assert trace.decoded_tokens > 0
        assert words[16:22] == [200, 210, 20, 30, 40, 0]
        assert len(server.prompts) == 3 * times
    assert isinstance(session.engine.engine, CheckedEngine)  # type: ignore[attr-defined]
    assert session.engine.engine.compare() is True  # type: ignore[attr-defined]


def test_a_fault(server: MockServer, faulty: Launch) -> None:
    outcome = run_request(request_of(faulty), ServerEngine(server.client(), NANO))
    assert outcome.status == 1
    assert "out of range" in outcome.problems[0]


def test_an_endless_kernel_is_left(server: MockServer, endless: Launch) -> None:
    engine = ServerEngine(server.client(), NANO, max_tokens=200)
    outcome = run_request(request_of(endless), engine, max_tokens=30)
    assert "did not end" in outcome.problems[0]


def test_a_wrong_token_is_found(server: MockServer, scale: Launch) -> None:
    server.change = lambda pieces: [*pieces[:3], "<|gpu:RAW(7)|>", *pieces[3:]]
    outcome = run_request(request_of(scale), ServerEngine(server.client(), NANO), check=True)
    assert outcome.exact is False
    assert "token 3 differs" in outcome.problems[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: [*p[:2], "the fox"], "after 2 tokens the server wrote 'the fox'"),
        (lambda p: [*p[:2], "<|gpu:RAW(9999)|>"], r"wrote '<\|gpu:RAW\(9999\)\|>', which is no"),
        (lambda p: [*p[:2], "<|gpu:RA"], "wrote '<|gpu:RA', which is no token of machine 'nano'"),
        (lambda p: p[:4], "ended its answer after 4 tokens"),
        (lambda p: [], "ended its answer after 0 tokens"),
    ],
)
def test_answers_that_are_no_launch(
    server: MockServer, scale: Launch, change: Any, message: str
) -> None:
    server.change = change
    outcome = run_request(request_of(scale), ServerEngine(server.client(), NANO))
    assert outcome.status == 1
    with pytest.raises(ForeignTokenError, match=message):
        run_on_engine(scale, ServerEngine(server.client(), NANO))


def test_scores(server: MockServer, scale: Launch) -> None:
    trace = run_on_engine(scale, InterpreterEngine(NANO))
    honest = ServerEngine(server.client(), NANO)
    run_on_engine(scale, honest)
    stream = server.prompts[0] + list(trace.ctas[0])
    first = len(server.prompts[0]) - 1
    honest.reset()
    predictions = honest.score(stream[:-1], first)
    assert [p.token for p in predictions] == list(trace.ctas[0])


def test_memory_comes_by_read_back_only(server: MockServer, scale: Launch) -> None:
    engine = ServerEngine(server.client(), NANO)
    with pytest.raises(RequestError, match="only be read back"):
        engine.read_memory()
    for options in ({"sms": 2}, {"verify": True}):
        with pytest.raises(RequestError, match="without --sms, --verify"):
            run_request(request_of(scale), engine, **options)


@pytest.mark.parametrize("config", [NANO, SMALL])
def test_the_machine_is_found(config: MachineConfig) -> None:
    assert find_machine(MockServer(config).client()) == config


def test_models_without_names(server: MockServer) -> None:
    server.named = False
    with pytest.raises(ServerError, match="'gpu' does not name the tokens of a GPU; serve"):
        find_machine(server.client())


def answering(handle: Callable[[httpx2.Request], httpx2.Response]) -> ServerClient:
    return ServerClient(URL, "gpu", transport=httpx2.MockTransport(handle))


def fail(error: type[Exception]) -> Callable[[httpx2.Request], httpx2.Response]:
    def handle(request: httpx2.Request) -> httpx2.Response:
        raise error("reason")

    return handle


def reply(status: int, **content: Any) -> Callable[[httpx2.Request], httpx2.Response]:
    return lambda request: httpx2.Response(status, **content)


@pytest.mark.parametrize(
    ("handle", "message"),
    [
        (fail(httpx2.ConnectError), "no server answers at http://gpu.test .*transformers serve"),
        (fail(httpx2.ReadTimeout), "wrote nothing for 600 s; --timeout"),
        (fail(httpx2.RemoteProtocolError), "broke off its answer: reason"),
        (reply(400, json={"detail": "pinned to 'x'"}), r"status 400\): pinned to 'x'"),
        (reply(404, json={"error": {"message": "no such model"}}), "not this model: no such model"),
        (reply(500, text="Internal Server Error"), r"status 500\): Internal Server Error"),
        (reply(500), "no reason given"),
        (reply(200, content=b'data: {"error": "out of memory"}\n\n'), "failed: out of memory"),
        (reply(200, content=b'data: {"error": "a "b""}\n\n'), "failed: .*a .b"),
        (reply(200, content=b'data: {"choices": [3]}\n\n'), "no completion"),
        (reply(200, json={"choices": []}), "does not say how many tokens"),
    ],
)
def test_servers_that_fail(handle: Any, message: str) -> None:
    with pytest.raises(ServerError, match=message):
        answering(handle).count("<|gpu:END|>")


@pytest.mark.parametrize(
    ("url", "data", "message"),
    [
        ("localhost:8000", {}, "is no address"),
        ("http://", {}, "is no address"),
        (URL, {"data": []}, r"lists 0 models \(none\)"),
        (URL, {"data": [{"id": "a"}, {"id": "b"}]}, r"lists 2 models \(a, b\): name one"),
        (URL, {"data": 3}, "does not list its models"),
    ],
)
def test_servers_that_are_none(url: str, data: Any, message: str) -> None:
    with pytest.raises(ServerError, match=message):
        ServerClient(url, transport=httpx2.MockTransport(reply(200, json=data)))


def test_the_command_line_without_a_server(invoke: Any, image_files: Any) -> None:
    status, text, _ = invoke("launch", image_files / "scale.json", "--engine", "server")
    assert status == 2
    assert "--server http://localhost:8000" in text
    status, text, _ = invoke(
        "launch", image_files / "scale.json", "--engine", "server", "--server", "http://127.0.0.1:9"
    )
    assert status == 2
    assert "no server answers at http://127.0.0.1:9" in text


def test_read_back_on_the_command_line(invoke: Any, image_files: Any) -> None:
    status, text, data = invoke(
        "launch", image_files / "scale.json", "--engine", "interpreter", "--read-back",
        "--block", 4, "--arg", "16=1,2,3,4", "--json",
    )  # fmt: skip
    assert status == 0, text
    assert data["outputs"] == {"16": [101, 102, 103, 104]}
    assert data["read_back_tokens"] > 0


SQUARE = """
extern "C" __global__ void square(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x];
}
"""


def test_a_device_on_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    server = MockServer(SMALL)
    monkeypatch.setattr(find_machine_module, "ServerClient", lambda *a, **o: server.client())
    find_machine_module.connect.cache_clear()
    device = qgpu.Device(engine="server", server=URL, check=True)
    assert device.config == SMALL
    square = qgpu.RawKernel(SQUARE, "square")
    x = np.array([1, -2, 3, 70000], dtype=np.int32)
    with device:
        kept, y = qgpu.asarray(x), qgpu.zeros(4)
        for times in (1, 2):
            stats = square(1, 4, (kept, y))
            assert stats.exact is True
            assert stats.read_back_tokens
            assert y.get().tolist() == [1, 4, 9, 70000**2 - 2**32]
            assert kept.get().tolist() == x.tolist()
            # One request for the launch; one for the arrays, which lie side by side.
            assert len(server.prompts) == 2 * times
        plain = np.zeros(4, dtype=np.int32)
        square(1, 4, (y, plain))
        assert plain.tolist() == [1, 16, 81, (70000**2 - 2**32) ** 2 % 2**32]
    find_machine_module.connect.cache_clear()


def test_text_that_a_server_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    from qgpu_run.chat.conversation import Answered, Conversation
    from qgpu_run.chat.stand_in import stand_in_base
    from qgpu_run.chat.tools import Tools
    from qgpu_run.server.served_text import ServedText

    prompts: list[str] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        prompts.append(json.loads(request.content)["prompt"])
        call = "<tool_call>|\n<function=calculate>\n<parameter=expression>\n6 * 7\n</parameter>"
        call += "\n</function>\n|</tool_call>"
        text = call if len(prompts) == 1 else "The |result is 42|."
        pieces = [_event({"choices": [{"text": piece}]}) for piece in text.split("|")]
        return httpx2.Response(200, content=b"".join(pieces))

    client = ServerClient(URL, "gpu", transport=httpx2.MockTransport(handle))
    monkeypatch.setattr("qgpu_run.server.served_text.connect", lambda *a: (client, SMALL))
    with pytest.raises(ServerError, match="'gpu' is no folder here"):
        ServedText(URL, None, None, 9.0)
    text = ServedText(URL, stand_in_base(), None, 9.0)
    tools = Tools(qgpu.Device(profile="small", engine="interpreter"))
    *_, answer = Conversation(text, tools).reply("What is 6 * 7?")
    assert isinstance(answer, Answered)
    assert answer.text == "The result is 42."
    assert [call.response for call in answer.calls] == ["42"]
    assert prompts[0].endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert "<tool_response>\n42\n</tool_response>" in prompts[1]
