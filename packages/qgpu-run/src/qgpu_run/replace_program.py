"""PROG records that turn the program in a state into another one."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu_isa.encoding import encode_block
from qgpu_isa.formats import word_tokens
from qgpu_isa.program import ProgramImage
from qgpu_isa.vocabulary import Token, TokenClass


def replace_program(known: list[list[int]], image: ProgramImage) -> list[Token]:
    """The records of what differs; blocks behind the last are never reached and stay.

    Args:
        known: [block][part] rows that the state holds; becomes what it holds then.
        image: the program that is to be there.
    """
    tokens = []
    for index, block in enumerate(image.blocks):
        wanted = list(encode_block(block))
        tokens += [
            token
            for part, row in enumerate(wanted)
            for token in _part(image, index, part, row, known[index])
        ]
        known[index] = wanted
    return tokens


def _part(
    image: ProgramImage, block: int, part: int, row: int, known: Sequence[int]
) -> list[Token]:
    config = image.config
    mask = (1 << config.chunk_bits) - 1
    tokens = []
    for chunk in range(config.chunks_per_slot):
        low = chunk * config.chunk_bits
        if (row ^ known[part]) >> low & mask:
            number = part * config.chunks_per_slot + chunk
            tokens.append(Token(TokenClass.PROG, (block, number)))
            tokens += word_tokens(config, row >> low & mask, config.chunk_bits)
    return tokens
