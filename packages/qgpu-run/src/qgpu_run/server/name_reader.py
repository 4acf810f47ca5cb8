"""Tokens out of a text of their names that comes in pieces."""

from __future__ import annotations

from collections import deque

from qgpu_isa.errors import TokenError
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.token_names import TOKEN_NAME, named_token
from qgpu_isa.vocabulary import vocabulary

from qgpu_run.errors import ForeignTokenError

BEGINNING = "<|gpu:"

SHOWN = 40
"""Characters of an answer in a message."""


class NameReader:
    """Reads names; anything else ends a launch.

    Attributes:
        taken: tokens that were taken.
    """

    def __init__(self, config: MachineConfig) -> None:
        self.taken = 0
        self._vocab = vocabulary(config)
        self._tokens: deque[int] = deque()
        self._text = ""

    def give(self, piece: str) -> None:
        """Adds text; what is wrong with it is said when it would be taken."""
        self._text += piece
        while match := TOKEN_NAME.match(self._text):
            try:
                token = self._vocab.encode(named_token(match[0]))
            except (TokenError, ValueError):
                return
            self._tokens.append(token)
            self._text = self._text[match.end() :]

    def take(self) -> int | None:
        """The next token, None if more text is needed.

        Raises:
            ForeignTokenError: there is text that is no name of a token of the machine.
        """
        if self._tokens:
            self.taken += 1
            return self._tokens.popleft()
        begins = self._text.startswith(BEGINNING) or BEGINNING.startswith(self._text)
        if not begins or "|>" in self._text:
            raise self._foreign()
        return None

    def end(self) -> None:
        """No more text comes.

        Raises:
            ForeignTokenError: it ends within a name.
        """
        if self._text:
            raise self._foreign()

    def _foreign(self) -> ForeignTokenError:
        return ForeignTokenError(
            f"after {self.taken} tokens the server wrote {self._text[:SHOWN]!r}, which is no token "
            f"of machine '{self._vocab.config.name}'"
        )
