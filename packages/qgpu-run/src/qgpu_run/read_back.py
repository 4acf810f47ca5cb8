"""Memory as tokens: a small program has the model write out the words of a range.

It runs in the stream behind a launch, like any other: PROG records put it in the launch's place,
and its CTA loads every word into a register, row by row, each a live-out. What an engine holds
inside is not looked at, so it may be one that only exchanges tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qgpu_isa.errors import ExecutionError
from qgpu_isa.instruction import Slot
from qgpu_isa.interpreter.machine import cta_tokens
from qgpu_isa.machine_config import CHUNKS_PER_RECORD, MachineConfig
from qgpu_isa.program import (
    Block,
    Branch,
    CondSource,
    DstKind,
    Operand,
    ProgramImage,
    SlotCode,
    Source,
    Status,
)
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary
from qgpu_ptx.memory_layout import WORD_BYTES

from qgpu_run.errors import RequestError
from qgpu_run.panel.machine_view import MachineView, decode_token
from qgpu_run.replace_program import replace_program


class ReadBackError(ExecutionError):
    """Tokens of a read-back that do not tell the words."""


@dataclass(frozen=True)
class ReadBack:
    """A program that writes out words of memory.

    Block k loads, in thread t, word `start + k * threads + t`; its last block is only for the
    threads that have a word left.

    Attributes:
        start: first word, as a word address; shared words stand behind the global ones.
        words: how many.
        threads: of its one CTA.
        image: the program.
    """

    start: int
    words: int
    threads: int
    image: ProgramImage

    @property
    def config(self) -> MachineConfig:
        """The machine."""
        return self.image.config

    def setup(self, view: MachineView) -> list[int]:
        """The tokens that put the program into a state, and start it.

        Args:
            view: what is known of the state, in which no CTA runs.
        """
        known = [list(rows) for rows in view.rom]
        preamble = [Token(TokenClass.END)] * (CHUNKS_PER_RECORD - 1)
        tokens = preamble + replace_program(known, self.image)
        tokens += cta_tokens(self.config, self.threads, 0)
        encode = vocabulary(self.config).encode
        return [encode(token) for token in tokens]


def read_back_program(config: MachineConfig, start: int, words: int) -> ReadBack:
    """The program that writes out a range.

    It takes as many threads as there are words, and more blocks than one only where there are more
    words than threads: a row then costs its record and an EXEC, and each pass a STOP.

    Args:
        config: the machine.
        start: first word.
        words: how many; at most `most_words` of them.

    Raises:
        RequestError: memory has no such words, or they are too many for a program.
    """
    if words < 1 or start < 0 or start + words > config.memory_words:
        raise RequestError(
            f"no {words} words from word {start} on: machine '{config.name}' has "
            f"{config.memory_words}"
        )
    if words > most_words(config):
        raise RequestError(f"a program reads back at most {most_words(config)} words")
    rows = -(-words // config.lanes)
    count = -(-rows // config.passes)
    threads = words if count == 1 else -(-rows // count) * config.lanes
    blocks = [_block(config, start, threads, index) for index in range(count)]
    rest = words - (count - 1) * threads
    for index in range(count):
        last = index == count - 1
        blocks[index] = _ended(blocks[index], index + 1, last, rest, index == count - 2, threads)
    image = ProgramImage(config, tuple(blocks), "read_back")
    image.verify()
    return ReadBack(start, words, threads, image)


def most_words(config: MachineConfig) -> int:
    """Words that one program can read back: one for each thread and block."""
    return config.threads * config.rom_blocks


def _register(config: MachineConfig, index: int) -> int:
    """Where block `index` puts its row: kernels take the last registers last, so they hold 0, and
    words that are 0 need not be sent."""
    return config.registers - 1 - index % config.registers


def _block(config: MachineConfig, start: int, threads: int, index: int) -> Block:
    address = WORD_BYTES * (start + index * threads)
    slots = {
        Slot.A0: SlotCode("lea2", Operand(Source.TID), Operand(Source.IMM), imm=address),
        Slot.MEM: SlotCode("ld", dst=DstKind.REG, dst_index=_register(config, index)),
    }
    return Block(slots)


def _ended(
    block: Block, following: int, last: bool, rest: int, before_last: bool, threads: int
) -> Block:
    """A block with its branch: to the next, or out for who has no word there."""
    if last:
        return Block(block.slots, Branch(taken_status=Status.EXIT))
    if not before_last or rest == threads:
        return Block(block.slots, Branch(taken=following))
    test = SlotCode("setltu", Operand(Source.TID), Operand(Source.IMM), imm=rest)
    branch = Branch(CondSource.FLAG_A1, taken=following, next_status=Status.EXIT)
    return Block({**block.slots, Slot.A1: test}, branch)


def decode_read_back(
    read_back: ReadBack, view: MachineView, tokens: Sequence[int]
) -> dict[int, int]:
    """The words by address, out of the tokens that the model wrote.

    Args:
        read_back: the program that ran.
        view: what is known of the state behind the set-up; reads the tokens.
        tokens: the model's, up to END.

    Raises:
        ReadBackError: they do not tell each word.
    """
    config, found = read_back.config, dict[int, int]()
    for token_id in tokens:
        token = decode_token(config, token_id)
        if token is not None and token.cls in (TokenClass.EXEC, TokenClass.STOP):
            found |= _row(read_back, view)
        view.take(token_id)
    wanted = range(read_back.start, read_back.start + read_back.words)
    missing = [address for address in wanted if address not in found]
    if missing or len(found) != len(wanted):
        raise ReadBackError(
            f"what the model wrote does not tell word {missing[0] if missing else max(found)} "
            f"of {read_back.words}"
        )
    return found


def _row(read_back: ReadBack, view: MachineView) -> dict[int, int]:
    """The words of the block that has just run."""
    run, config = view.run, read_back.config
    if run is None or run.block >= len(read_back.image.blocks):
        return {}
    row = view.registers[run.pass_][_register(config, run.block)]
    first = read_back.start + run.block * read_back.threads + run.pass_ * config.lanes
    return {first + lane: row[lane] for lane in range(config.lanes) if run.mask >> lane & 1}


def pieces(config: MachineConfig, ranges: Sequence[range]) -> Iterator[range]:
    """Ranges of words without overlaps, in order, none longer than a program reads back."""
    addresses = sorted({address for wanted in ranges for address in wanted})
    first = 0
    for index in range(1, len(addresses) + 1):
        ends = index == len(addresses) or addresses[index] != addresses[index - 1] + 1
        if ends or index - first == most_words(config):
            yield range(addresses[first], addresses[index - 1] + 1)
            first = index
