"""The reference interpreter behind the Engine protocol.

It sees what the model sees, tokens and nothing else: it reads the program, memory and CTA out of
the setup records. So a launch on it also shows that the records say everything.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

from qgpu_isa.encoding import ROM_PARTS, decode_block
from qgpu_isa.errors import TokenError
from qgpu_isa.interpreter import Launch, Machine, StepRecord
from qgpu_isa.interpreter.state import State
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.program import ProgramImage
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary

from qgpu_run.engines.engine import Prediction


class InterpreterEngine:
    """Runs launches on the reference interpreter."""

    name = "interpreter"
    restarts_rows = True

    def __init__(self, config: MachineConfig) -> None:
        self.config = config
        self._vocab = vocabulary(config)
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        config = self.config
        self._rom = [[0] * ROM_PARTS for _ in range(config.rom_blocks)]
        self._state = State(config)
        self._machine: Machine | None = None
        self._steps: Iterator[StepRecord] | None = None
        self._record: Token | None = None
        self._chunk = 0
        self._cta = 0
        self._masks: dict[int, int] = {}
        self._next = Token(TokenClass.END)
        self._rows: list[InterpreterEngine] = []

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """Reads tokens; the prediction is what the interpreter writes next."""
        for token_id in tokens:
            self._read(self._vocab.decode(token_id))
        return Prediction(self._vocab.encode(self._next), float("inf"))

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """The predictions after each token from index `first` on."""
        predictions = [self.feed([token]) for token in tokens]
        return predictions[first:]

    def read_memory(self, row: int = 0) -> list[int]:
        """The words of memory."""
        state = self._rows[row]._state if self._rows else self._state
        return list(state.memory)

    def fork(self, rows: int) -> None:
        """Makes copies of the interpreter, which has no CTA running."""
        self._rows = [self._copy() for _ in range(rows)]

    def restart(self, row: int) -> None:
        """Copies the interpreter again."""
        self._rows[row] = self._copy()

    def feed_rows(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Prediction]:
        """Reads tokens in the rows named."""
        return [self._rows[row].feed(own) for row, own in zip(rows, tokens, strict=True)]

    def join(self) -> None:
        """Drops the rows."""
        self._rows = []

    def _copy(self) -> InterpreterEngine:
        if self._steps is not None:
            raise TokenError("a CTA is running")
        made = InterpreterEngine(self.config)
        made._rom = copy.deepcopy(self._rom)
        made._state = copy.deepcopy(self._state)
        made._masks = dict(self._masks)
        return made

    def _read(self, token: Token) -> None:
        if self._steps is not None:
            self._follow(token)
            return
        match token.cls:
            case TokenClass.RAW:
                self._continue(token.values[0])
            case TokenClass.MASK:
                mask, g = token.values
                self._masks[g] = mask
            case TokenClass.INIT:
                g, masked = token.values
                if not masked:
                    self._masks[g] = self.config.full_mask
            case TokenClass.EXEC:
                self._start()
            case TokenClass.PROG | TokenClass.MEM | TokenClass.CTA:
                self._record, self._chunk = token, 0
                if token.cls is TokenClass.CTA:
                    self._cta = 0
            case TokenClass.END:
                pass
            case _:
                raise TokenError(f"{token} is not a setup record")

    def _continue(self, bits: int) -> None:
        """A record's next bits; its first ones replace what stood there."""
        config, record = self.config, self._record
        if record is None:
            raise TokenError("a RAW token without a record")
        low = self._chunk * config.payload_bits
        begins = self._chunk == 0
        self._chunk += 1
        if record.cls is TokenClass.CTA:
            self._cta |= bits << low
        elif record.cls is TokenClass.MEM:
            memory, address = self._state.memory, record.values[0]
            memory[address] = (0 if begins else memory[address]) | bits << low
        else:
            block, number = record.values
            part, chunk = divmod(number, config.chunks_per_slot)
            first = chunk * config.chunk_bits
            if begins:
                self._rom[block][part] &= ~(((1 << config.chunk_bits) - 1) << first)
            self._rom[block][part] |= bits << (first + low)
            self._machine = None

    def _start(self) -> None:
        threads = sum(mask.bit_count() for mask in self._masks.values())
        if self._machine is None or self._machine.launch.threads != threads:
            blocks = tuple(decode_block(tuple(rows)) for rows in self._rom)
            image = ProgramImage(self.config, blocks, "tokens")
            self._machine = Machine(Launch(image, threads=threads))
            self._machine.state = self._state
        self._machine.start_cta(self._cta)
        self._steps = self._machine.decode(self._cta)
        self._next = next(self._steps).token

    def _follow(self, token: Token) -> None:
        """A decoded token is fed back; any other than the one predicted ends the agreement."""
        if token != self._next:
            raise TokenError(f"the interpreter wrote {self._next}, it was fed {token}")
        assert self._steps is not None
        following = next(self._steps, None)
        if following is None:
            self._steps = None
        else:
            self._next = following.token
