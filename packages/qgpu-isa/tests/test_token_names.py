"""Names of tokens can be read back."""

from __future__ import annotations

import pytest
from qgpu_isa.errors import TokenError
from qgpu_isa.machine_config import NANO
from qgpu_isa.token_names import named_token, token_name
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary


def test_names() -> None:
    assert token_name(Token(TokenClass.END)) == "<|gpu:END|>"
    assert token_name(Token(TokenClass.STOP, (3, 31))) == "<|gpu:STOP(3,31)|>"


def test_every_name_is_its_tokens() -> None:
    vocab = vocabulary(NANO)
    tokens = [vocab.decode(number) for number in range(vocab.size)]
    assert [named_token(token_name(token)) for token in tokens] == tokens


@pytest.mark.parametrize("text", ["", "END", "<|gpu:NO|>", "<|gpu:END()|>", " <|gpu:END|>"])
def test_other_text(text: str) -> None:
    with pytest.raises(TokenError, match="no name of a GPU token"):
        named_token(text)
