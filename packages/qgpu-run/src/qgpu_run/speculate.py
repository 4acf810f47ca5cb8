"""Decoding with drafts: the host proposes tokens, the weights accept or reject each of them.

A drafter runs ahead of the model and proposes the next tokens. The model reads them in one forward
pass and chooses a token at every position, as it does at the end of any pass. A draft is accepted
where it is what the model chose; at the first that is not, the model's own token stands and what
was read behind it is undone. So every token of the launch is the model's choice after the tokens
before it, which are its choices too: drafts change how many tokens a pass reads, never which.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from qgpu_isa.errors import TokenError
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary

from qgpu_run.check import token_text
from qgpu_run.engines.engine import Engine, Prediction
from qgpu_run.engines.interpreter_engine import InterpreterEngine

DRAFT_TOKENS = 32
"""Drafts of one forward pass, unless told."""


class Drafter(Protocol):
    """Proposes what the model may write next."""

    def reset(self) -> None:
        """Begins anew."""

    def see(self, tokens: Sequence[int]) -> None:
        """Takes tokens that stand in the stream: setup records, or what the model chose."""

    def propose(self, count: int) -> list[int]:
        """At most `count` tokens that may follow, END or FAULT last; none where it cannot tell."""


class InterpreterDrafter:
    """Proposes what the reference interpreter would write.

    It follows the stream token by token. Where the stream takes another way than the interpreter
    it cannot follow any more, and proposes nothing until it begins anew.
    """

    def __init__(self, config: MachineConfig) -> None:
        self._interpreter = InterpreterEngine(config)
        vocab = vocabulary(config)
        self._ends = {vocab.encode(Token(TokenClass.END)), *vocab.range_of(TokenClass.FAULT)}
        self._exec = vocab.range_of(TokenClass.EXEC)
        self.reset()

    def reset(self) -> None:
        """Begins anew."""
        self._interpreter.reset()
        self._ahead: deque[int] = deque()
        self._next: int | None = None
        self._lost = self._runs = False

    def see(self, tokens: Sequence[int]) -> None:
        """Follows the stream, as far as it can."""
        for token in tokens:
            if self._lost:
                return
            if self._ahead:
                self._lost = token != self._ahead.popleft()
                continue
            try:
                self._next = self._interpreter.feed([token]).token
            except TokenError:
                self._lost = True
                return
            self._runs = token not in self._ends and (self._runs or token in self._exec)

    def propose(self, count: int) -> list[int]:
        """The interpreter's next tokens, up to the end of the CTA."""
        if self._lost or not self._runs or self._next is None:
            return []
        while len(self._ahead) < count and self._next not in self._ends:
            self._ahead.append(self._next)
            self._next = self._interpreter.feed([self._next]).token
        drafts = list(self._ahead)[:count]
        if len(drafts) < count and self._next in self._ends:
            drafts.append(self._next)
        return drafts


@dataclass
class Speculation:
    """What came of the drafts.

    Attributes:
        drafted: tokens that the host proposed.
        accepted: those that the weights chose too.
        rejected: those where the weights chose something else; drafts behind one are not judged.
        passes: forward passes that decoded, those that read a CTA's setup included.
        plain_passes: those of them without drafts.
        first_rejection: the first rejected draft in words, and what the weights wrote.
        followed: whether the drafter could follow to the end, so that no pass was without drafts
            because of what the weights wrote.
    """

    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    passes: int = 0
    plain_passes: int = 0
    first_rejection: str | None = None
    followed: bool = True

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For people."""
        text = (
            f"speculation: the host proposed {self.drafted} tokens, the weights accepted "
            f"{self.accepted} and rejected {self.rejected}; {self.passes} forward passes, "
            f"{self.plain_passes} of them without drafts"
        )
        if self.first_rejection is None:
            return [text]
        after = "decoded on with drafts" if self.followed else "decoded on without drafts"
        return [text, f"{self.first_rejection}; {after}"]


class SpeculatingEngine:
    """An engine that reads drafts ahead of what it is fed; to its user it is the engine itself.

    It is fed setup records and, one by one, the tokens that it chose, as any engine. Predictions
    at accepted drafts are kept until they are asked for.
    """

    def __init__(
        self, engine: Engine, drafter: Drafter | None = None, draft_tokens: int = DRAFT_TOKENS
    ) -> None:
        self._engine = engine
        self.name, self.config = engine.name, engine.config
        self._drafter = drafter or InterpreterDrafter(engine.config)
        self._count = draft_tokens
        self.reset()

    def reset(self) -> None:
        """Forgets everything, the counts too."""
        self._engine.reset()
        self._drafter.reset()
        self.speculation = Speculation()
        self._stream: list[int] = []
        self._ready: deque[tuple[int, Prediction]] = deque()

    def feed(self, tokens: Sequence[int]) -> Prediction:
        """Reads tokens, and drafts behind them; the prediction after the last of the tokens."""
        if self._ready:
            draft, prediction = self._ready[0]
            if list(tokens) == [draft]:
                self._ready.popleft()
                self._stream.append(draft)
                self._drafter.see(tokens)
                return prediction
            self._undo()
        self._stream += tokens
        self._drafter.see(tokens)
        return self._read(list(tokens))

    def score(self, tokens: Sequence[int], first: int) -> list[Prediction]:
        """Reads all tokens; the predictions after each from index `first` on."""
        self._undo()
        self._stream += tokens
        self._drafter.see(tokens)
        return self._engine.score(tokens, first)

    def read_memory(self) -> list[int]:
        """The words of memory after what was fed; drafts that were read ahead are undone first."""
        self._undo()
        return self._engine.read_memory()

    def _read(self, tokens: list[int]) -> Prediction:
        drafts = self._drafter.propose(self._count)
        # The last draft is judged by the choice before it and need not be read; END and FAULT,
        # behind which the host looks into the state, only ever stand there.
        predictions = self._engine.score([*tokens, *drafts[:-1]], len(tokens) - 1)
        found = self.speculation
        found.passes += 1
        found.plain_passes += not drafts
        found.followed &= bool(drafts)
        found.drafted += len(drafts)
        for place, draft in enumerate(drafts):
            chosen = predictions[place].token
            if chosen != draft:
                found.rejected += 1
                self._explain(draft, chosen)
                if place + 1 < len(drafts):
                    self._restore([*self._stream, *drafts[:place]])
                break
            found.accepted += 1
            if place + 1 < len(drafts):
                self._ready.append((draft, predictions[place + 1]))
        return predictions[0]

    def _explain(self, draft: int, chosen: int) -> None:
        if self.speculation.first_rejection is None:
            self.speculation.first_rejection = (
                f"first rejection, after {self.speculation.accepted} accepted drafts: the host "
                f"proposed {token_text(self.config, draft)}, the weights wrote "
                f"{token_text(self.config, chosen)}"
            )

    def _undo(self) -> None:
        """Takes back what was read ahead and has not been asked for."""
        if self._ready:
            self._ready.clear()
            self._restore(self._stream)

    def _restore(self, stream: Sequence[int]) -> None:
        """Brings the engine to where it was behind a stream: it reads all of it again."""
        self._engine.reset()
        self._engine.feed(stream)
