"""Launches: the setup stream, and the machine that answers it token by token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from qgpu_isa.encoding import encode_block
from qgpu_isa.errors import ExecutionError
from qgpu_isa.formats import predicate_tokens, record_tokens, word_tokens
from qgpu_isa.instruction import Slot
from qgpu_isa.interpreter.execute_block import BlockResult, execute_block
from qgpu_isa.interpreter.schedule_passes import (
    next_lanes,
    running,
    stop_block,
    stop_status,
    switch_pass,
)
from qgpu_isa.interpreter.state import PassFlag, State
from qgpu_isa.machine_config import CHUNKS_PER_RECORD, WORD_BITS, WORD_MASK, MachineConfig
from qgpu_isa.program import DstKind, ProgramImage, Status
from qgpu_isa.vocabulary import Token, TokenClass, Vocabulary, vocabulary

CTA_NUMBER_BITS = 16
"""Bits of a CTA's number in its setup record, and so of the CTAID operand."""

MAX_CTAS = 1 << CTA_NUMBER_BITS


@dataclass(frozen=True)
class Launch:
    """A program and the data it starts from.

    Attributes:
        image: the program.
        memory: word address -> word; words not named are zero.
        threads: threads of each CTA, 1 to `config.threads`.
        ctas: number of CTAs, run one after the other.
    """

    image: ProgramImage
    memory: dict[int, int] = field(default_factory=dict)
    threads: int = 1
    ctas: int = 1

    @property
    def config(self) -> MachineConfig:
        return self.image.config


@dataclass(frozen=True)
class StepRecord:
    """One token that the machine decoded, and what it belongs to.

    Attributes:
        token: the token.
        cta, block, pass_, mask: the execution that was running when it was written.
        slot: the slot whose live-out it carries, if any.
    """

    token: Token
    cta: int
    block: int
    pass_: int
    mask: int
    slot: Slot | None = None


def program_tokens(image: ProgramImage) -> list[Token]:
    """PROG records of an image; ROM parts that are zero are not sent."""
    config = image.config
    tokens: list[Token] = []
    for index, block in enumerate(image.blocks):
        for part, row in enumerate(encode_block(block)):
            for chunk in range(config.chunks_per_slot):
                bits = row >> (chunk * config.chunk_bits) & ((1 << config.chunk_bits) - 1)
                if bits:
                    number = part * config.chunks_per_slot + chunk
                    tokens.append(Token(TokenClass.PROG, (index, number)))
                    tokens += word_tokens(config, bits, config.chunk_bits)
    return tokens


def memory_tokens(config: MachineConfig, memory: dict[int, int]) -> list[Token]:
    """MEM records of the words that are not zero."""
    tokens: list[Token] = []
    for address, word in sorted(memory.items()):
        if word:
            tokens.append(Token(TokenClass.MEM, (address,)))
            tokens += word_tokens(config, word, WORD_BITS)
    return tokens


def pass_mask(config: MachineConfig, threads: int, g: int) -> int:
    """Lanes of pass `g` that a CTA of `threads` threads fills."""
    count = max(0, min(config.lanes, threads - g * config.lanes))
    return (1 << count) - 1


def cta_tokens(config: MachineConfig, threads: int, cta: int) -> list[Token]:
    """Records that start one CTA; the last token is the first EXEC."""
    *record, start = start_tokens(config, cta)
    return [*record, *init_tokens(config, threads), start]


def init_tokens(config: MachineConfig, threads: int) -> list[Token]:
    """INIT records of all passes, which are the same for every CTA of a launch."""
    tokens = []
    for g in range(config.passes):
        mask = pass_mask(config, threads, g)
        if mask != config.full_mask:
            tokens.append(Token(TokenClass.MASK, (mask, g)))
        tokens.append(Token(TokenClass.INIT, (g, int(mask != config.full_mask))))
    return tokens


def start_tokens(config: MachineConfig, cta: int) -> list[Token]:
    """The CTA record and the first EXEC, all that is a CTA's own where INIT stands before."""
    number = word_tokens(config, cta, CTA_NUMBER_BITS)
    return [Token(TokenClass.CTA), *number, Token(TokenClass.EXEC, (0, 0, 0))]


class Machine:
    """The reference machine, fed and drained the way the model is.

    `start_cta` resets what the CTA's setup records reset; `decode` then yields the tokens the
    model writes, up to and including END or FAULT.
    """

    def __init__(self, launch: Launch) -> None:
        launch.image.verify()
        config = launch.config
        if not 1 <= launch.threads <= config.threads:
            raise ExecutionError(
                f"a CTA of {launch.threads} threads does not fit machine '{config.name}', "
                f"which holds {config.threads}"
            )
        if not 1 <= launch.ctas <= MAX_CTAS:
            raise ExecutionError(f"{launch.ctas} CTAs; a launch has 1 to {MAX_CTAS}")
        for address, word in launch.memory.items():
            if not (0 <= address < config.memory_words and 0 <= word <= WORD_MASK):
                raise ExecutionError(
                    f"memory word {address} = {word}: machine '{config.name}' has the words 0 to "
                    f"{config.memory_words - 1}, each from 0 to {WORD_MASK}"
                )
        self.launch = launch
        self.state = State(config)
        for address, word in launch.memory.items():
            self.state.memory[address] = word
        self.vocab: Vocabulary = vocabulary(config)

    def start_cta(self, cta: int) -> None:
        """Puts every lane at block 0 and resets the barriers."""
        config, state = self.launch.config, self.state
        state.ctaid = cta
        for g in range(config.passes):
            mask = pass_mask(config, self.launch.threads, g)
            state.flags[g] = PassFlag.READY if mask else PassFlag.EXITED
            state.masks[g] = mask
            state.stopped_at[g] = 0
            for i in range(config.lanes):
                exists = bool(mask >> i & 1)
                state.pcs[g][i] = 0 if exists else config.rom_blocks - 1
                state.statuses[g][i] = Status.RUN if exists else Status.EXIT

    def decode(self, cta: int) -> Iterator[StepRecord]:
        """The decoded tokens of one CTA.

        Raises:
            ExecutionError: never; an endless program yields endlessly.
        """
        state = self.state
        g = phase = block = 0
        mask = state.masks[g]
        while True:
            result = execute_block(state, self.launch.image.blocks[block], block, g, mask)
            at = (cta, block, g, mask)
            if result.fault is not None:
                yield StepRecord(Token(TokenClass.FAULT, (int(result.fault),)), *at)
                return
            yield from self._records(result, at)
            resumed = not running(state, g)
            if resumed:
                status = stop_status(state, g)
                waits_at = stop_block(state, g)
                yield StepRecord(Token(TokenClass.STOP, (int(status), waits_at)), *at)
                switch = switch_pass(state, g, phase, status, waits_at)
                if switch is None:
                    yield StepRecord(Token(TokenClass.END), *at)
                    return
                g, phase = switch.next_pass, switch.phase
            block, mask = next_lanes(state, g, resumed=resumed)
            if mask != state.masks[g]:
                state.masks[g] = mask
                yield StepRecord(Token(TokenClass.MASK, (mask, g)), cta, block, g, mask)
            yield StepRecord(Token(TokenClass.EXEC, (block, g, phase)), cta, block, g, mask)

    def _records(self, result: BlockResult, at: tuple[int, int, int, int]) -> Iterator[StepRecord]:
        state, g = self.state, at[2]
        for live in result.live:
            if live.kind is DstKind.PRED:
                lanes = live.predicate_row(state.predicates[g][live.index])
                state.predicates[g][live.index] = lanes
                tokens = predicate_tokens(int(live.slot), lanes)
            else:
                old = state.registers[g][live.index]
                row = live.register_row(old)
                tokens = record_tokens(self.vocab, int(live.slot), old, row)
                state.registers[g][live.index] = row
            for token in tokens:
                yield StepRecord(token, *at, slot=live.slot)


def launch_tokens(launch: Launch) -> list[Token]:
    """The setup records before the first CTA: a preamble, the program, then memory.

    The preamble of END tokens fills the taps of the causal convolution: what stood before the
    launch (nothing, or text) is out of their sight when the first record begins.
    """
    preamble = [Token(TokenClass.END)] * (CHUNKS_PER_RECORD - 1)
    return preamble + program_tokens(launch.image) + memory_tokens(launch.config, launch.memory)


def run_launch(launch: Launch, max_tokens: int = 1_000_000) -> tuple[Machine, list[StepRecord]]:
    """Runs a whole launch on the reference machine.

    Returns:
        the machine after its last token, and all decoded tokens.

    Raises:
        ExecutionError: more than `max_tokens` tokens were decoded.
    """
    machine = Machine(launch)
    steps: list[StepRecord] = []
    for cta in range(launch.ctas):
        machine.start_cta(cta)
        for step in machine.decode(cta):
            steps.append(step)
            if len(steps) > max_tokens:
                raise ExecutionError(
                    f"the kernel wrote more than {max_tokens} tokens; "
                    "raise --max-tokens if it is not an endless loop"
                )
        if steps[-1].token.cls is TokenClass.FAULT:
            break
    return machine, steps
