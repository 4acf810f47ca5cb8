"""A merged model behind a server of text: tokens go in and come out as names, and nothing else.

Requests know nothing of each other: each has the whole stream as its prompt, and its answer is what
the model writes from there to the end of the CTA. While the host feeds back what was answered, the
next token is there already.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.token_names import token_name
from qgpu_isa.vocabulary import TokenClass, vocabulary

from qgpu_run.engines.engine import Prediction
from qgpu_run.errors import ForeignTokenError, RequestError
from qgpu_run.server.client import Answer, ServerClient
from qgpu_run.server.name_reader import NameReader

REQUEST_TOKENS = 100_000
"""Tokens that an answer may have; a CTA that writes more takes another request."""


class ServerEngine:
    """Drives a launch through `/v1/completions`.

    Args:
        client: the server.
        config: the machine of its model.
        max_tokens: tokens that an answer may have.

    Attributes:
        requests: how many were made.
        prompt_tokens: tokens of their prompts.
    """

    name = "server"
    tokens_only = True

    def __init__(
        self, client: ServerClient, config: MachineConfig, *, max_tokens: int = REQUEST_TOKENS
    ) -> None:
        self.config = config
        self.requests = self.prompt_tokens = 0
        self._client, self._max_tokens = client, max_tokens
        self._vocab = vocabulary(config)
        self._ends = {
            number
            for cls in (TokenClass.END, TokenClass.FAULT)
            for number in self._vocab.range_of(cls)
        }
        self._stream: list[int] = []
        self._answer: Answer | None = None
        self._reader = NameReader(config)
        self._chosen: int | None = None

    def reset(self) -> None:
        """Forgets everything."""
        self._leave()
        self._stream = []

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """The server's choice after these tokens."""
        goes_on = self._answer is not None and list(tokens) == [self._chosen]
        self._stream += tokens
        if not goes_on:
            self._ask()
        token = self._next()
        while token is None:
            # It wrote as much as a request may.
            self._ask()
            token = self._next()
        self._chosen = token
        if token in self._ends:
            self._leave()
        return Prediction(token, float("inf"))

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """The server's choices; what it chooses otherwise takes a request each."""
        found = [self.feed(tokens[: first + 1])]
        return found + [self.feed([token]) for token in tokens[first + 1 :]]

    def read_memory(self) -> list[int]:
        """Nobody looks into a server.

        Raises:
            RequestError: always.
        """
        raise RequestError("a server's memory can only be read back as tokens")

    def _ask(self) -> None:
        self._leave()
        names = "".join(token_name(self._vocab.decode(token)) for token in self._stream)
        self._answer = self._client.complete(names, self._max_tokens)
        self._reader = NameReader(self.config)
        self.requests += 1
        self.prompt_tokens += len(self._stream)

    def _leave(self) -> None:
        """Ends the request that is going on; the server then writes no more."""
        if self._answer is not None:
            self._answer.close()
        self._answer = self._chosen = None

    def _next(self) -> int | None:
        """The next token of the answer; None at the end of one that was too long."""
        assert self._answer is not None
        while (token := self._reader.take()) is None:
            piece = next(self._answer, None)
            if piece is not None:
                self._reader.give(piece)
                continue
            self._reader.end()
            if self._answer.finish != "length" or not self._reader.taken:
                raise ForeignTokenError(
                    f"the server ended its answer after {self._reader.taken} tokens, "
                    "none of which is END or FAULT"
                )
            return None
        return token
