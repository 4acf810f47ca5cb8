"""A server's model as it chats: the host words the prompt and cuts the answer into tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qgpu_run.chat.text_model import ChatSettings, load_tokenizer
from qgpu_run.errors import ServerError
from qgpu_run.server.find_machine import connect


class ServedText:
    """Writes the turns of a conversation; see `qgpu_run.chat.conversation.Writer`.

    Args:
        url: address of the server.
        folder: where tokenizer and settings are; None for the folder that the server reads.
        profile: the machine that the model is to be; None for any.
        timeout: seconds to wait for each piece of an answer.

    Raises:
        ServerError: there is no such server, or its folder is not to be seen from here.
        ModelError: the folder has no tokenizer or chat template.
    """

    def __init__(self, url: str, folder: Path | None, profile: str | None, timeout: float) -> None:
        self._client, _ = connect(url, None, profile, timeout)
        self.folder = folder if folder is not None else Path(self._client.model)
        if not self.folder.is_dir():
            raise ServerError(
                f"the server's model '{self._client.model}' is no folder here: name a folder with "
                "its tokenizer"
            )
        self.settings = ChatSettings.read(self.folder)
        self.tokenizer = load_tokenizer(self.folder)

    def write(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], limit: int
    ) -> Iterator[int]:
        """The assistant's next turn, token by token, as the host's tokenizer cuts its pieces.

        A generator that is left early ends the request.
        """
        prompt: str = self.tokenizer.apply_chat_template(
            messages,
            tools=tools or None,
            add_generation_prompt=True,
            enable_thinking=False,
            tokenize=False,
        )
        answer = self._client.complete(prompt, limit)
        try:
            for piece in answer:
                yield from self.tokenizer(piece, add_special_tokens=False).input_ids
        finally:
            answer.close()
