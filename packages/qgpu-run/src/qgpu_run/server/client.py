"""Completions of a server: prompts in, text out as it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from qgpu_run.errors import ServerError
from qgpu_run.open_engine import SERVER_TIMEOUT

SHOWN = 300
"""Characters of a server's message."""


class ServerClient:
    """A server at an address.

    Args:
        url: its address, with or without `/v1`.
        model: the name under which the server knows the model; None for the only one it has.
        timeout: seconds to wait for each piece of an answer.
        transport: for tests.

    Raises:
        ServerError: the address is none, or no server answers there, or no model is named.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        timeout: float = SERVER_TIMEOUT,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self._timeout = timeout
        try:
            parts = httpx2.URL(self.url)
        except httpx2.InvalidURL:
            parts = httpx2.URL("")
        if parts.scheme not in ("http", "https") or not parts.host:
            raise ServerError(f"'{url}' is no address of a server, such as http://localhost:8000")
        local = parts.host in ("localhost", "127.0.0.1", "::1")
        self._http = httpx2.Client(
            base_url=self.url,
            timeout=httpx2.Timeout(timeout, connect=min(timeout, 10.0)),
            trust_env=not local,
            transport=transport,
        )
        self.model = model if model is not None else self._only_model()

    def complete(self, prompt: str, max_tokens: int) -> Answer:
        """What the model writes after a prompt, greedily."""
        return Answer(self, self._body(prompt, max_tokens))

    def count(self, prompt: str) -> int:
        """How many tokens a prompt has, by the server's tokenizer.

        Raises:
            ServerError: it does not say.
        """
        answer = self.complete(prompt, 1)
        for _ in answer:
            pass
        if answer.prompt_tokens is None:
            raise ServerError(f"{self.url} does not say how many tokens a prompt has")
        return answer.prompt_tokens

    def _body(self, prompt: str, max_tokens: int) -> dict[str, Any]:
        return {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": max_tokens,
            "temperature": 0.0,
            "stream": True,
        }

    def _only_model(self) -> str:
        with self.errors():
            response = self._http.get("/v1/models")
        self.check(response)
        try:
            names = [str(entry["id"]) for entry in response.json()["data"]]
        except (ValueError, KeyError, TypeError):
            raise ServerError(f"{self.url} does not list its models: name one") from None
        if len(names) != 1:
            listed = ", ".join(names[:5]) or "none"
            raise ServerError(f"{self.url} lists {len(names)} models ({listed}): name one")
        return names[0]

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what goes wrong on the way into messages."""
        try:
            yield
        except httpx2.ConnectError as error:
            raise ServerError(
                f"no server answers at {self.url} ({error}); `transformers serve FOLDER` starts one"
            ) from None
        except httpx2.TimeoutException:
            raise ServerError(
                f"{self.url} wrote nothing for {self._timeout:g} s; --timeout allows more"
            ) from None
        except httpx2.HTTPError as error:
            raise ServerError(f"{self.url} broke off its answer: {error}") from None

    def check(self, response: httpx2.Response) -> None:
        """Raises ServerError for a response that is none; its text has been read."""
        if response.is_success:
            return
        path = response.request.url.path
        if response.status_code == 404:
            raise ServerError(f"{self.url} has no {path}, or not this model: {_reason(response)}")
        raise ServerError(
            f"{self.url} refuses {path} (status {response.status_code}): {_reason(response)}"
        )

    def stream(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of an answer.

        Raises:
            ServerError: there is none, or it ends in an error.
        """
        with (
            self.errors(),
            self._http.stream("POST", "/v1/completions", json=body) as response,
        ):
            if not response.is_success:
                response.read()
                self.check(response)
            for line in response.iter_lines():
                data = line.removeprefix("data:").strip()
                if not line.startswith("data:") or data == "[DONE]":
                    continue
                try:
                    event = json.loads(data)
                except ValueError:
                    # A message that was put between quotes as it is.
                    event = {"error": data}
                if not isinstance(event, dict) or event.get("error"):
                    error = event.get("error") if isinstance(event, dict) else event
                    raise ServerError(f"{self.url} failed: {str(error)[:SHOWN]}")
                yield event


class Answer:
    """An answer as it is written, piece by piece.

    Attributes:
        finish: why it ended: `stop` or `length`; None before.
        prompt_tokens: tokens of the prompt, if the server said so.
    """

    def __init__(self, client: ServerClient, body: dict[str, Any]) -> None:
        self.finish: str | None = None
        self.prompt_tokens: int | None = None
        self._client = client
        self._events: Any = client.stream(body)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        for event in self._events:
            try:
                usage = event.get("usage") or {}
                self.prompt_tokens = usage.get("prompt_tokens", self.prompt_tokens)
                choice = event["choices"][0] if event.get("choices") else {}
                self.finish = choice.get("finish_reason") or self.finish
                text = choice.get("text") or ""
            except (AttributeError, KeyError, TypeError, IndexError):
                raise ServerError(f"{self._client.url} writes what is no completion") from None
            if text:
                return str(text)
        raise StopIteration

    def close(self) -> None:
        """Ends the request, wherever it is."""
        self._events.close()


def _reason(response: httpx2.Response) -> str:
    text = response.text
    try:
        data = response.json()
        if isinstance(data, dict):
            found = data.get("detail", data.get("error", data.get("message", data)))
            text = str(found.get("message", found) if isinstance(found, dict) else found)
    except ValueError:
        pass
    return text.strip()[:SHOWN] or "no reason given"
