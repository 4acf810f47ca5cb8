"""A lower bound for the tokens of a launch: the bits that have to travel back to the first layer.

What one token's pass through the layers computes is known to later passes only from the layer on
that keeps it, and to the first layers only through the token that was chosen. `docs/tokens.md` has
the definition in words (`FLOOR_TEXT`), and what it leaves out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qgpu_isa.errors import ExecutionError
from qgpu_isa.instruction import Slot
from qgpu_isa.interpreter.machine import Launch, Machine, StepRecord, pass_mask
from qgpu_isa.interpreter.state import AccessLog, State
from qgpu_isa.machine_config import WORD_BITS
from qgpu_isa.program import Block, CondSource, Source
from qgpu_isa.vocabulary import TokenClass, vocabulary

FLOOR_TEXT = """\
A pass through the layers computes forwards only: a value that a deep layer finds is in the first
layers of later tokens only if a token says so. What a launch must send back at least is counted by
`qgpu-run tokens` (`qgpu_isa.token_floor`), for the program and the blocks that ran:

- **Register bits.** Words that an execution changed and that a later execution of the same thread
  reads before they change again. The words of a row that are needed take the shortest of: one word,
  if all are equal; first word and stride, if they count up; all words. A word takes its significant
  bits as a signed or unsigned number, at least one. How long it is and which description was taken
  costs nothing.
- **Predicate bits.** The same, a bit a lane, or one bit if the lanes that are needed agree.
- **Choice bits.** Where the lanes of an execution go: the entropy of what happened, given the block
  and its lanes, from how often it happened in this launch. A branch that always goes one way costs
  nothing, nor does one that is executed once.

Their sum divided by the bits of a token, the logarithm of the number of tokens there are, is
`floor_tokens`, at least 1. Since a pass through the layers executes one block, `block_floor_tokens`
takes no less than one token for every execution, and whole tokens for what each sends.

Stored words are counted (`stored_bits`) but not added: a store writes the state of the layer that
computes it, where loads find it, and needs no token. So much for this machine; it is no bound for
all machines. Values are functions of program and input, so one that could compute everything again,
or run the whole launch in one pass, would have to send nothing; and blocks that hold more would
send less. On the other side, a code this short could not be decoded: nothing says where a number
ends.
"""


@dataclass(frozen=True)
class TokenFloor:
    """What a launch must send at least; see `FLOOR_TEXT`.

    Attributes:
        executions: blocks that ran, each for one pass.
        register_bits, predicate_bits, choice_bits: what must travel back.
        stored_bits: significant bits of stored words, which need not.
        bits_per_token: what a token can hold.
        block_floor_tokens: tokens at least, if every execution takes one of its own.
    """

    executions: int
    register_bits: int
    predicate_bits: int
    choice_bits: float
    stored_bits: int
    bits_per_token: float
    block_floor_tokens: int

    @property
    def bits(self) -> float:
        """All that must travel back."""
        return self.register_bits + self.predicate_bits + self.choice_bits

    @property
    def floor_tokens(self) -> float:
        """Tokens that hold as many bits; to end a launch takes one."""
        return max(1.0, self.bits / self.bits_per_token)


@dataclass(frozen=True)
class FloorRun:
    """A launch that was run and watched: the machine at its end, its tokens, its floor."""

    machine: Machine
    steps: list[StepRecord]
    floor: TokenFloor


def run_for_floor(launch: Launch, max_tokens: int = 1_000_000) -> FloorRun:
    """Runs a launch on the reference machine and counts what it must send.

    Raises:
        ExecutionError: more than `max_tokens` tokens were decoded.
    """
    machine = Machine(launch)
    watch = _Watch(launch, machine.state)
    steps: list[StepRecord] = []
    for cta in range(launch.ctas):
        machine.start_cta(cta)
        watch.begin_cta()
        for step in machine.decode(cta):
            steps.append(step)
            if len(steps) > max_tokens:
                raise ExecutionError(
                    f"the kernel wrote more than {max_tokens} tokens; "
                    "raise --max-tokens if it is not an endless loop"
                )
            watch.see(step)
        if steps[-1].token.cls is TokenClass.FAULT:
            break
    return FloorRun(machine, steps, watch.floor())


Place = tuple[str, int]
"""A register or predicate: its kind, `r` or `p`, and its number."""


@dataclass
class _Execution:
    """One block for one pass.

    Attributes:
        block, mask: which, and its lanes.
        changed: new words by lane, of each register and predicate that changed.
        needed: lanes of them that are read later.
        outcome: where its lanes went.
    """

    block: int
    mask: int
    changed: dict[Place, dict[int, int]] = field(default_factory=dict)
    needed: dict[Place, set[int]] = field(default_factory=dict)
    outcome: tuple[object, ...] = ()

    def bits(self, kind: str) -> int:
        """What the words of one kind take that are read later."""
        take = row_bits if kind == "r" else predicate_bits
        return sum(
            take({lane: self.changed[place][lane] for lane in lanes})
            for place, lanes in self.needed.items()
            if place[0] == kind
        )


class _Watch:
    """Follows a machine from step to step.

    The machine executes a block behind the EXEC step, and has written its live-outs when the first
    step comes that carries none.
    """

    def __init__(self, launch: Launch, state: State) -> None:
        self._config, self._state = launch.config, state
        self._first_mask = pass_mask(launch.config, launch.threads, 0)
        self._reads = [block_reads(block) for block in launch.image.blocks]
        self._choices = [_chooses(block) for block in launch.image.blocks]
        self._executions: list[_Execution] = []
        self._writer: dict[tuple[int, Place, int], _Execution] = {}
        self._stored = 0

    def begin_cta(self) -> None:
        """A CTA starts at block 0, with nothing that an execution of it wrote."""
        self._writer.clear()
        self._start(0, 0, self._first_mask)

    def see(self, step: StepRecord) -> None:
        """Takes the next step, before the machine goes on."""
        if step.slot is None and self._running is not None:
            self._finish(*self._running)
        if step.token.cls is TokenClass.EXEC:
            self._start(step.block, step.pass_, step.mask)

    def _start(self, block: int, g: int, mask: int) -> None:
        self._running: tuple[int, int, int] | None = (block, g, mask)
        self._before = self._rows(g)
        self._state.log = AccessLog()

    def _rows(self, g: int) -> dict[Place, list[int]]:
        state, lanes = self._state, range(self._config.lanes)
        rows = {("r", index): list(row) for index, row in enumerate(state.registers[g])}
        for index, mask in enumerate(state.predicates[g]):
            rows["p", index] = [mask >> lane & 1 for lane in lanes]
        return rows

    def _finish(self, block: int, g: int, mask: int) -> None:
        self._running = None
        state = self._state
        lanes = [lane for lane in range(self._config.lanes) if mask >> lane & 1]
        for place in self._reads[block]:
            for lane in lanes:
                writer = self._writer.get((g, place, lane))
                if writer is not None:
                    writer.needed.setdefault(place, set()).add(lane)
        execution = _Execution(block, mask)
        for place, row in self._rows(g).items():
            before = self._before[place]
            changed = {lane: word for lane, word in enumerate(row) if word != before[lane]}
            if changed:
                execution.changed[place] = changed
            for lane in changed:
                self._writer[g, place, lane] = execution
        if self._choices[block]:
            execution.outcome = tuple((state.pcs[g][i], state.statuses[g][i]) for i in lanes)
        if state.log is not None:
            self._stored += sum(significant_bits(state.memory[a]) for a in state.log.writes)
        self._executions.append(execution)

    def floor(self) -> TokenFloor:
        """What all executions that were seen must send."""
        bits_per_token = math.log2(vocabulary(self._config).size)
        choices = _choice_bits(self._executions)
        registers = [execution.bits("r") for execution in self._executions]
        predicates = [execution.bits("p") for execution in self._executions]
        each = zip(registers, predicates, choices, strict=True)
        return TokenFloor(
            len(self._executions),
            sum(registers),
            sum(predicates),
            sum(choices),
            self._stored,
            bits_per_token,
            sum(max(1, math.ceil(sum(parts) / bits_per_token)) for parts in each),
        )


def _chooses(block: Block) -> bool:
    """Whether the lanes of a block can go two ways, or wait for a bank of memory."""
    branch = block.branch
    ways = {(branch.taken, branch.taken_status), (branch.next, branch.next_status)}
    return (branch.cond is not CondSource.ALWAYS and len(ways) > 1) or Slot.MEM in block.slots


def _choice_bits(executions: Sequence[_Execution]) -> list[float]:
    """For each execution, the surprise at where its lanes went."""
    times = Counter((e.block, e.mask) for e in executions)
    outcomes = Counter((e.block, e.mask, e.outcome) for e in executions)
    return [
        math.log2(times[e.block, e.mask] / outcomes[e.block, e.mask, e.outcome]) for e in executions
    ]


def block_reads(block: Block) -> frozenset[Place]:
    """Registers and predicates that a block reads."""
    places: set[Place] = set()
    for slot, code in block.slots.items():
        # MEM takes its address from A0, not from operand a.
        operands = (code.b,) if slot is Slot.MEM else (code.a, code.b)
        places |= {("r", o.register) for o in operands if o.source is Source.REG}
        if code.pred.index is not None:
            places.add(("p", code.pred.index))
    if block.branch.cond is CondSource.PRED:
        places.add(("p", block.branch.pred))
    return frozenset(places)


def significant_bits(word: int) -> int:
    """Bits of a word as a signed or unsigned number, at least one."""
    value = word - (1 << WORD_BITS) if word >> (WORD_BITS - 1) else word
    signed = (value if value >= 0 else ~value).bit_length() + 1
    return max(1, min(word.bit_length(), signed))


def row_bits(words: Mapping[int, int]) -> int:
    """The shortest description of words by lane."""
    (first, base), *rest = sorted(words.items())
    alone = sum(map(significant_bits, words.values()))
    if not rest:
        return alone
    if len(set(words.values())) == 1:
        return significant_bits(base)
    stride, remainder = divmod(rest[0][1] - base, rest[0][0] - first)
    counts = all(word == base + stride * (lane - first) for lane, word in rest)
    if remainder or not counts:
        return alone
    return min(alone, significant_bits(base) + significant_bits(stride % (1 << WORD_BITS)))


def predicate_bits(bits: Mapping[int, int]) -> int:
    """A bit a lane, or one for all."""
    return 1 if len(set(bits.values())) == 1 else len(bits)
