"""Names of the machine's tokens, as a merged checkpoint's tokenizer has them."""

from __future__ import annotations

import re

from qgpu_isa.errors import TokenError
from qgpu_isa.vocabulary import Token, TokenClass

TOKEN_NAME = re.compile(r"<\|gpu:([A-Z]+[0-9]?)(?:\((\d+(?:,\d+)*)\))?\|>")
"""What a name looks like."""


def token_name(token: Token) -> str:
    """The text of a GPU token: `<|gpu:END|>`, `<|gpu:STOP(3,31)|>`."""
    fields = f"({','.join(map(str, token.values))})" if token.values else ""
    return f"<|gpu:{token.cls.name}{fields}|>"


def named_token(name: str) -> Token:
    """The token with a name; whether a machine has it, its vocabulary knows.

    Raises:
        TokenError: the text is no name of a token.
    """
    match = TOKEN_NAME.fullmatch(name)
    if match is None or match[1] not in TokenClass.__members__:
        raise TokenError(f"{name!r} is no name of a GPU token")
    values = tuple(map(int, match[2].split(","))) if match[2] else ()
    return Token(TokenClass[match[1]], values)
