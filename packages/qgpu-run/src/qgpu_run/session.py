"""Launches one after the other in the same recurrent state.

Memory stays in the state between launches, and so does the program. What the state holds is known:
the host wrote it, or has read it back. So a launch sends records only for the words of memory and
the parts of the program that are to be other than they are.

An engine that only exchanges tokens keeps no state between launches: there each launch begins a
stream, and the words that are wanted come as tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qgpu_isa.encoding import ROM_PARTS
from qgpu_isa.formats import word_tokens
from qgpu_isa.machine_config import CHUNKS_PER_RECORD, WORD_BITS
from qgpu_isa.program import ProgramImage
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary

from qgpu_run.check_rows import guard_rows, run_request_rows
from qgpu_run.engines.engine import Engine, RowEngine, reads_memory
from qgpu_run.engines.read_back_engine import ReadBackEngine
from qgpu_run.errors import RequestError
from qgpu_run.launch import MAX_TOKENS, LaunchTrace, OnToken, run_on_engine
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.replace_program import replace_program


class Session:
    """An engine, and the launches that it has run since its state was empty.

    Attributes:
        read_back_tokens: tokens that the engine wrote to tell the last launch's words; None where
            they are read out of its state.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine if reads_memory(engine) else ReadBackEngine(engine)
        self.config = engine.config
        self.read_back_tokens: int | None = None
        self.reset()

    def reset(self) -> None:
        """Has the next launch begin with an empty state."""
        self._stale = True
        self._rom = [[0] * ROM_PARTS for _ in range(self.config.rom_blocks)]
        self._memory = [0] * self.config.memory_words

    def run(
        self,
        request: LaunchRequest,
        *,
        sms: int = 1,
        assume_independent: bool = False,
        max_tokens: int = MAX_TOKENS,
        on_token: OnToken | None = None,
        wanted: Sequence[range] = (),
    ) -> tuple[LaunchTrace, list[int]]:
        """Runs a launch.

        Args:
            request: its `launch.memory` is what global memory holds at the start; words that it
                does not name are 0.
            sms: CTAs that run at a time.
            assume_independent: with several, does not look first whether they may.
            on_token: called with the CTA and each decoded token.
            wanted: words that may have changed and are of use behind the launch.

        Returns:
            the tokens, and the words of memory at the end; of an engine that only exchanges
            tokens, words that are not wanted are as the host wrote them.

        Raises:
            CtaDependenceError: CTAs that were to run side by side depend on each other.
            ExecutionError: the launch did not end, or in a fault; the next one begins anew.
        """
        if sms > 1:
            if not isinstance(self.engine, RowEngine):
                raise RequestError(f"engine {self.engine.name} runs CTAs one after the other")
            if not assume_independent:
                guard_rows(request, max_tokens)
        if self._stale:
            self.engine.reset()
            self._stale = False
        try:
            return self._run(request, sms, max_tokens, on_token, wanted)
        except BaseException:
            # The state is somewhere within a CTA, after Ctrl-C as well.
            self.reset()
            raise

    def _run(
        self,
        request: LaunchRequest,
        sms: int,
        max_tokens: int,
        on_token: OnToken | None,
        wanted: Sequence[range],
    ) -> tuple[LaunchTrace, list[int]]:
        launch, engine = request.launch, self.engine
        if isinstance(engine, ReadBackEngine):
            self.reset()
            before = engine.decoded
            trace = run_on_engine(launch, engine, max_tokens=max_tokens, on_token=on_token)
            words = dict(launch.memory) | engine.read_words(wanted)
            self.read_back_tokens = engine.decoded - before
            return trace, [words.get(a, 0) for a in range(self.config.memory_words)]
        setup = self._setup(launch.image, launch.memory)
        if sms == 1:
            trace = run_on_engine(
                launch, engine, max_tokens=max_tokens, on_token=on_token, setup=setup
            )
            self._memory = engine.read_memory()
            return trace, list(self._memory)
        assert isinstance(engine, RowEngine)
        result = run_request_rows(
            request, engine, sms, max_tokens=max_tokens, on_token=on_token, setup=setup
        )
        # The stream has seen nothing of what its copies did.
        self._memory = engine.read_memory()
        return result.trace, result.memory(self._memory)

    def _setup(self, image: ProgramImage, memory: Mapping[int, int]) -> list[int]:
        encode = vocabulary(self.config).encode
        preamble = [Token(TokenClass.END)] * (CHUNKS_PER_RECORD - 1)
        tokens = preamble + replace_program(self._rom, image) + self._memory_tokens(memory)
        return [encode(token) for token in tokens]

    def _memory_tokens(self, memory: Mapping[int, int]) -> list[Token]:
        tokens = []
        for address in range(self.config.global_words):
            word = memory.get(address, 0)
            if word != self._memory[address]:
                tokens.append(Token(TokenClass.MEM, (address,)))
                tokens += word_tokens(self.config, word, WORD_BITS)
        return tokens
