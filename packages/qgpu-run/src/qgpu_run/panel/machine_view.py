"""The machine as its tokens tell it.

A `MachineView` reads every token of a stream, those that the host wrote and those that the model
chose, and the words that were read out of the recurrent state. It executes nothing: registers and
predicates are what records carried, the scheduler is what EXEC, MASK and STOP said, memory is what
was written by the host or read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from qgpu_isa.encoding import ROM_PARTS, decode_block
from qgpu_isa.errors import TokenError
from qgpu_isa.formats import linear_shift
from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.interpreter.state import PassFlag
from qgpu_isa.machine_config import NIBBLE_BITS, WORD_BITS, WORD_MASK, MachineConfig
from qgpu_isa.program import Block, DstKind, Status
from qgpu_isa.units import LoadStore
from qgpu_isa.vocabulary import Fault, Token, TokenClass, vocabulary

from qgpu_run.panel.lane_places import (
    Place,
    Places,
    gone,
    places_after,
    places_running,
    places_stopped,
)

Row = tuple[int, ...]

RECORD_LEADS = frozenset(
    (
        TokenClass.UNIFORM,
        TokenClass.LINEAR,
        TokenClass.LINEAR4,
        TokenClass.BITS,
        TokenClass.SAME,
        TokenClass.WORD,
        TokenClass.GROUP,
        TokenClass.ROW,
    )
)


@lru_cache(maxsize=1 << 16)
def decode_token(config: MachineConfig, token_id: int) -> Token | None:
    """The token with this id, None if it is not one of the machine's."""
    try:
        return vocabulary(config).decode(token_id)
    except TokenError:
        return None


@dataclass(frozen=True, slots=True)
class Execution:
    """A block that a pass runs. `phase` is that of the CTA's barrier."""

    block: int
    pass_: int
    phase: int
    mask: int


@dataclass(frozen=True, slots=True)
class TokenNote:
    """A token and what it belongs to.

    Attributes:
        token: None if it is not one of the machine's.
        run: the execution that the token belongs to, if a CTA runs.
        slot, target: the slot whose live-out it carries, and where that goes, as in `r5`.
        piece: of a RAW token, which piece of the words or part of its record it carries.
        lanes: of a record of a group, its first and last lane.
    """

    token_id: int
    token: Token | None
    cta: int
    run: Execution | None
    slot: Slot | None = None
    target: str = ""
    piece: int = 0
    lanes: tuple[int, int] | None = None


@dataclass(slots=True)
class OpenRecord:
    """A record of which tokens are still to come.

    Attributes:
        lead: its first token.
        raws: payloads of the tokens behind it.
        low: of a GROUP record, payloads of its first part.
    """

    lead: Token
    raws: tuple[int, ...] = ()
    low: tuple[int, ...] = ()


class Doing(Enum):
    """What a pass is doing, in words."""

    RUNS = "runs"
    READY = "ready"
    WARP = "waits for warp"
    CTA = "waits for CTA"
    DONE = "done"
    UNUSED = "not used"


@dataclass(slots=True)
class PassView:
    """A pass, as far as tokens tell.

    Attributes:
        exists: lanes that have a thread.
        mask: lanes that it runs, as the last MASK or INIT said.
        flag, stopped_at: as the machine keeps them (`qgpu_isa.interpreter.state.State`).
        stopped_for: what the last STOP said, RUN before the first.
        lanes: where each lane can be.
        executions: blocks run so far in this CTA.
    """

    exists: int
    mask: int
    flag: PassFlag
    lanes: tuple[Places, ...]
    stopped_at: int = 0
    stopped_for: Status = Status.RUN
    executions: int = 0


@dataclass
class MachineView:
    """What is known of the machine after the tokens read so far.

    Attributes:
        rom: the program's rows as PROG records gave them; `block` decodes them.
        registers: [pass][register] rows, a word a lane.
        predicates: [pass][predicate] masks over the lanes.
        memory: words as the host wrote them or as they were last read from the recurrent state.
        written_at, predicate_written_at: decoded tokens when a register or predicate was written.
        memory_changed_at: decoded tokens when a word was last seen to change.
        stores_unread: executions with a store since memory was last read.
        passes: one view a pass.
        cta: number of the CTA, None before the first.
        run: the execution that is going on or was the last.
        ran_at: decoded tokens when it began.
        left_block: whether it has run, as the token behind EXEC shows.
        cta_runs: whether a CTA runs.
        before, before_predicates: the running pass's registers and predicates as the block found
            them, which is what its operands read.
        results: rows of live-outs that the running block has sent so far.
        record: a record that is not complete.
        sending: the slot of which more groups, or more of a record, are still to come.
        decoded, setup: tokens read that the model chose and that the host wrote.
        fault: why the launch ended, if it faulted.
        strange: tokens that made no sense.
        min_margin: smallest logit margin.
    """

    config: MachineConfig
    rom: list[list[int]] = field(init=False)
    registers: list[list[Row]] = field(init=False)
    predicates: list[list[int]] = field(init=False)
    memory: list[int] = field(init=False)
    written_at: list[list[int]] = field(init=False)
    predicate_written_at: list[list[int]] = field(init=False)
    memory_changed_at: dict[int, int] = field(default_factory=dict)
    stores_unread: int = 0
    passes: list[PassView] = field(init=False)
    cta: int | None = None
    run: Execution | None = None
    ran_at: int = 0
    left_block: bool = True
    cta_runs: bool = False
    before: list[Row] = field(default_factory=list)
    before_predicates: list[int] = field(default_factory=list)
    results: dict[Slot, Row] = field(default_factory=dict)
    record: OpenRecord | None = None
    sending: Slot | None = None
    decoded: int = 0
    setup: int = 0
    ctas_ended: int = 0
    fault: Fault | None = None
    strange: int = 0
    min_margin: float = float("inf")

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """The state is empty: no program, all words 0."""
        c = self.config
        zero = (0,) * c.lanes
        self.rom = [[0] * ROM_PARTS for _ in range(c.rom_blocks)]
        self._blocks: dict[int, Block | None] = {}
        self.registers = [[zero] * c.registers for _ in range(c.passes)]
        self.predicates = [[0] * c.predicates for _ in range(c.passes)]
        self.written_at = [[-1] * c.registers for _ in range(c.passes)]
        self.predicate_written_at = [[-1] * c.predicates for _ in range(c.passes)]
        self.memory = [0] * c.memory_words
        self.memory_changed_at = {}
        lanes: tuple[Places, ...] = (frozenset({gone(c)}),) * c.lanes
        self.passes = [PassView(0, 0, PassFlag.EXITED, lanes) for _ in range(c.passes)]
        self.cta = self.run = self.record = self.sending = self.fault = None
        self.cta_runs = False
        self.stores_unread = self.ran_at = 0
        self.before, self.before_predicates, self.results = [], [], {}
        self._stopped = False
        self.left_block = True
        self._flags: dict[Slot, int] = {}

    def copy(self) -> MachineView:
        """A copy that can go on by itself; rows are shared, as they are never changed."""
        made = MachineView.__new__(MachineView)
        made.__dict__.update(self.__dict__)
        made.rom = [list(rows) for rows in self.rom]
        made._blocks = dict(self._blocks)
        made.registers = [list(rows) for rows in self.registers]
        made.predicates = [list(masks) for masks in self.predicates]
        made.written_at = [list(times) for times in self.written_at]
        made.predicate_written_at = [list(times) for times in self.predicate_written_at]
        made.memory = list(self.memory)
        made.memory_changed_at = dict(self.memory_changed_at)
        made.passes = [
            PassView(p.exists, p.mask, p.flag, p.lanes, p.stopped_at, p.stopped_for, p.executions)
            for p in self.passes
        ]
        made.before, made.before_predicates = list(self.before), list(self.before_predicates)
        made.results, made._flags = dict(self.results), dict(self._flags)
        if self.record is not None:
            made.record = OpenRecord(self.record.lead, self.record.raws, self.record.low)
        return made

    def begin_launch(self) -> None:
        """A launch begins in the same state: counts start anew, contents stay."""
        self.decoded = self.setup = self.ctas_ended = self.strange = 0
        self.fault, self.min_margin = None, float("inf")
        self.memory_changed_at = {}
        for times in (*self.written_at, *self.predicate_written_at):
            times[:] = [-1] * len(times)

    # What to show.

    def block(self, index: int) -> Block | None:
        """A block of the program, as PROG records gave it; None if they make no sense."""
        if index not in self._blocks:
            try:
                self._blocks[index] = decode_block(tuple(self.rom[index]))
            except ValueError:
                self._blocks[index] = None
        return self._blocks[index]

    @property
    def phase(self) -> int:
        """The phase of the CTA's barrier."""
        return 0 if self.run is None else self.run.phase

    def doing(self, g: int) -> Doing:
        """What a pass is doing."""
        view = self.passes[g]
        if not view.exists:
            return Doing.UNUSED
        if view.flag is PassFlag.EXITED:
            return Doing.DONE
        if self.cta_runs and self.run is not None and self.run.pass_ == g and not self._stopped:
            return Doing.RUNS
        if view.flag is (PassFlag.CTA1 if self.phase else PassFlag.CTA0):
            return Doing.CTA
        if view.stopped_for is Status.WARP:
            return Doing.WARP
        return Doing.READY

    def stores(self, index: int) -> bool:
        """Whether a block writes memory."""
        block = self.block(index)
        code = None if block is None else block.slots.get(Slot.MEM)
        if code is None:
            return False
        unit = INSTRUCTIONS[code.name].unit
        return isinstance(unit, LoadStore) and unit.store

    # What happens.

    def take_memory(self, words: Mapping[int, int]) -> None:
        """Takes words, by word address, as they were read from the recurrent state."""
        for address, word in words.items():
            if self.memory[address] != word:
                self.memory[address] = word
                self.memory_changed_at[address] = self.decoded
        self.stores_unread = 0

    def take_setup(self, token_id: int) -> TokenNote:
        """Reads a token that the host wrote."""
        self.setup += 1
        return self._take(token_id)

    def take(self, token_id: int, margin: float = float("inf")) -> TokenNote:
        """Reads a token that the model chose."""
        self.decoded += 1
        self.min_margin = min(self.min_margin, margin)
        return self._take(token_id)

    def _take(self, token_id: int) -> TokenNote:
        token = decode_token(self.config, token_id)
        if token is None:
            self.strange += 1
            return TokenNote(token_id, None, self.cta or 0, self.run if self.cta_runs else None)
        if token.cls is not TokenClass.FAULT:
            self._leave_block()
        if token.cls is TokenClass.RAW:
            return self._raw(token_id, token)
        if token.cls is not TokenClass.GROUP:
            self.record = self.sending = None
        if token.cls in RECORD_LEADS and self.cta_runs:
            return self._lead(token_id, token)
        values = token.values
        match token.cls:
            case TokenClass.MASK:
                lanes, g = values
                self.passes[g].mask = lanes
            case TokenClass.EXEC:
                block, pass_, phase = values
                self._exec(Execution(block, pass_, phase, self.passes[pass_].mask))
            case TokenClass.STOP:
                self._stop(Status(values[0]), values[1])
            case TokenClass.INIT:
                self._init(*values)
            case TokenClass.PROG | TokenClass.MEM:
                self.record = OpenRecord(token)
            case TokenClass.CTA:
                self.record, self.cta = OpenRecord(token), 0
                self.run, self.results = None, {}
            case TokenClass.END:
                if self.cta_runs:
                    self.cta_runs = False
                    self.ctas_ended += 1
            case TokenClass.FAULT:
                self.cta_runs = False
                self.fault = Fault(values[0])
            case _:
                self.strange += 1
        return TokenNote(token_id, token, self.cta or 0, self.run)

    def _init(self, g: int, masked: int) -> None:
        mask = self.passes[g].mask if masked else self.config.full_mask
        self.passes[g] = PassView(
            mask,
            mask,
            PassFlag.READY if mask else PassFlag.EXITED,
            tuple(
                frozenset({Place(0, Status.RUN) if mask >> i & 1 else gone(self.config)})
                for i in range(self.config.lanes)
            ),
        )

    def _exec(self, run: Execution) -> None:
        view = self.passes[run.pass_]
        eligible = {Status.RUN}
        if self._stopped or not self.cta_runs:
            at_cta = view.flag in (PassFlag.CTA0, PassFlag.CTA1)
            eligible.add(Status.CTA if at_cta else Status.WARP)
        view.lanes = tuple(places_running(view.lanes, run.block, run.mask, eligible))
        view.executions += 1
        self.run, self.cta_runs, self._stopped = run, True, False
        self.left_block = False
        self.ran_at = self.decoded
        self.before = list(self.registers[run.pass_])
        self.before_predicates = list(self.predicates[run.pass_])
        self.results, self._flags = {}, {}
        if self.stores(run.block):
            self.stores_unread += 1

    def _leave_block(self) -> None:
        """The block has run: its lanes go to its targets."""
        if not self.left_block and self.run is not None:
            self.left_block = True
            self._place_lanes(narrow=False)

    def _place_lanes(self, *, narrow: bool) -> None:
        run = self.run
        block = None if run is None else self.block(run.block)
        if run is None or block is None:
            return
        after = places_after(
            self.config, block, run.block, run.mask, self.before_predicates, self._flags
        )
        view = self.passes[run.pass_]
        view.lanes = tuple(
            (places & after[i] if narrow else after[i]) if i in after else places
            for i, places in enumerate(view.lanes)
        )

    def _stop(self, status: Status, block: int) -> None:
        if self.run is None:
            return
        view = self.passes[self.run.pass_]
        view.lanes = tuple(places_stopped(view.lanes, status, block))
        view.stopped_at, view.stopped_for = block, status
        match status:
            case Status.WARP:
                view.flag = PassFlag.READY
            case Status.CTA:
                view.flag = PassFlag.CTA1 if self.phase else PassFlag.CTA0
            case Status.EXIT:
                view.flag = PassFlag.EXITED
        self._stopped = True

    # Records.

    def _target(self, slot: Slot) -> tuple[DstKind, int]:
        block = None if self.run is None else self.block(self.run.block)
        code = None if block is None else block.slots.get(slot)
        return (DstKind.NONE, 0) if code is None else (code.dst, code.dst_index)

    def _note(
        self, token_id: int, token: Token, slot: Slot, piece: int, lanes: tuple[int, int] | None
    ) -> TokenNote:
        kind, index = self._target(slot)
        target = {DstKind.REG: f"r{index}", DstKind.PRED: f"p{index}"}.get(kind, "")
        return TokenNote(token_id, token, self.cta or 0, self.run, slot, target, piece, lanes)

    def _group_lanes(self, lead: Token) -> tuple[int, int] | None:
        if lead.cls is TokenClass.ROW:
            return 0, self.config.lanes - 1
        if lead.cls is not TokenClass.GROUP:
            return None
        low = lead.values[4] * self.config.group_lanes
        return low, low + self.config.group_lanes - 1

    def _lead(self, token_id: int, token: Token) -> TokenNote:
        config, lanes = self.config, range(self.config.lanes)
        slot = Slot(token.values[-1])
        match token.cls:
            case TokenClass.BITS:
                self._write_bits(slot, token.values[0])
            case TokenClass.SAME:
                kind, index = self._target(slot)
                if kind is DstKind.REG and self.run is not None:
                    self._write(slot, self.registers[self.run.pass_][index])
            case TokenClass.GROUP:
                low = self.record.raws if token.values[3] and self.record is not None else ()
                self.record, self.sending = OpenRecord(token, (), low), slot
                self._end_pieces(slot, self.record)
            case TokenClass.ROW:
                self.record, self.sending = OpenRecord(token), slot
                self._end_pieces(slot, self.record)
            case TokenClass.WORD:
                self.record, self.sending = OpenRecord(token), slot
            case _:
                first = token.values[0] << linear_shift(config, token.cls)
                step = {TokenClass.LINEAR: 1, TokenClass.LINEAR4: 4}.get(token.cls, 0)
                self._write(slot, tuple(first + step * lane for lane in lanes))
        return self._note(token_id, token, slot, 0, self._group_lanes(token))

    def _raw(self, token_id: int, token: Token) -> TokenNote:
        record, bits = self.record, token.values[0]
        if record is None:
            self.strange += 1
            return TokenNote(token_id, token, self.cta or 0, self.run)
        piece = len(record.raws)
        record.raws += (bits,)
        match record.lead.cls:
            case TokenClass.CTA:
                self.cta = (self.cta or 0) | bits << piece * self.config.payload_bits
            case TokenClass.MEM:
                self._write_memory(record.lead.values[0], piece, bits)
            case TokenClass.PROG:
                self._write_rom(record.lead.values[0], record.lead.values[1], piece, bits)
            case _:
                slot = Slot(record.lead.values[-1])
                note = self._note(
                    token_id, token, slot, piece + len(record.low), self._group_lanes(record.lead)
                )
                if record.lead.cls is TokenClass.WORD:
                    self._end_word(slot, record)
                else:
                    self._end_pieces(slot, record)
                return note
        return TokenNote(token_id, token, self.cta or 0, None, None, str(record.lead), piece)

    def _write_memory(self, address: int, piece: int, bits: int) -> None:
        old = 0 if piece == 0 else self.memory[address]
        self.memory[address] = old | bits << piece * self.config.payload_bits

    def _write_rom(self, block: int, number: int, piece: int, bits: int) -> None:
        config, rows = self.config, self.rom[block]
        part, chunk = divmod(number, config.chunks_per_slot)
        first = chunk * config.chunk_bits
        if piece == 0:
            rows[part] &= ~(((1 << config.chunk_bits) - 1) << first)
        rows[part] |= bits << first + piece * config.payload_bits
        self._blocks.pop(block, None)

    def _end_word(self, slot: Slot, record: OpenRecord) -> None:
        width = self.config.payload_bits
        if len(record.raws) * width < WORD_BITS:
            return
        word = sum(bits << width * i for i, bits in enumerate(record.raws))
        self._write(slot, (word,) * self.config.lanes)
        self.record = self.sending = None

    def _end_pieces(self, slot: Slot, record: OpenRecord) -> None:
        """Writes the words of a GROUP or ROW record, if all of it is there."""
        config, lead = self.config, record.lead
        lowest, pieces, signed, *_ = lead.values
        raws = (*record.low, *record.raws)
        if len(raws) < pieces:
            return
        kind, index = self._target(slot)
        if kind is not DstKind.REG or self.run is None:
            self.strange += 1
            return
        lanes = self._group_lanes(lead)
        assert lanes is not None
        size = config.row_bits if lead.cls is TokenClass.ROW else NIBBLE_BITS
        width = 1 + size * pieces
        row = list(self.results.get(slot) or self.registers[self.run.pass_][index])
        for place, lane in enumerate(range(lanes[0], lanes[1] + 1)):
            word = lowest >> place & 1
            for i, bits in enumerate(raws):
                word |= (bits >> size * place & (1 << size) - 1) << 1 + size * i
            if signed and word >> width - 1:
                word |= -1 << width
            row[lane] = word & WORD_MASK
        self._write(slot, tuple(row))
        more = lead.cls is TokenClass.GROUP and not lead.values[5]
        self.record, self.sending = None, slot if more else None

    def _write_bits(self, slot: Slot, mask: int) -> None:
        kind, index = self._target(slot)
        row = tuple(mask >> i & 1 for i in range(self.config.lanes))
        if kind is DstKind.PRED and self.run is not None:
            self.predicates[self.run.pass_][index] = mask
            self.predicate_written_at[self.run.pass_][index] = self.decoded
            self._sent(slot, row)
        else:
            self._write(slot, row)

    def _write(self, slot: Slot, row: Row) -> None:
        kind, index = self._target(slot)
        if kind is not DstKind.REG or self.run is None:
            self.strange += 1
            return
        self.registers[self.run.pass_][index] = row
        self.written_at[self.run.pass_][index] = self.decoded
        self._sent(slot, row)

    def _sent(self, slot: Slot, row: Row) -> None:
        """A result has been sent back; that of a comparison tells where a branch on it goes."""
        self.results[slot] = row
        self._flags[slot] = sum((word & 1) << i for i, word in enumerate(row))
        self._place_lanes(narrow=True)
