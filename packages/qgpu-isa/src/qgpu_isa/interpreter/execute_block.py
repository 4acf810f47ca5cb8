"""One block for one pass."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.interpreter.state import State
from qgpu_isa.program import (
    FORWARDS,
    Block,
    CondSource,
    DstKind,
    Operand,
    Predicate,
    SlotCode,
    Source,
    Status,
)
from qgpu_isa.units import Alu, LoadStore
from qgpu_isa.vocabulary import Fault


@dataclass(frozen=True)
class LiveOut:
    """A result that is sent back.

    Attributes:
        slot: the slot it comes from.
        kind, index: its destination.
        words: the result per lane.
        write: lanes whose destination it replaces.
    """

    slot: Slot
    kind: DstKind
    index: int
    words: list[int]
    write: int

    def register_row(self, old: list[int]) -> list[int]:
        """The register's row after the write."""
        return [
            w if self.write >> i & 1 else o
            for i, (w, o) in enumerate(zip(self.words, old, strict=True))
        ]

    def predicate_row(self, old: int) -> int:
        """The predicate's lane mask after the write."""
        value = sum((w & 1) << i for i, w in enumerate(self.words))
        return old & ~self.write | value & self.write


@dataclass
class BlockResult:
    """What a block computed.

    Attributes:
        results: slot -> word per lane, as forwarded (not guarded).
        mask: lanes that executed: the given mask less those that lost a memory bank.
        live: live-outs, in the order in which their records follow; each is merged with what its
            destination holds by then.
        fault: why the launch ends here, if it does.
    """

    results: dict[Slot, list[int]]
    mask: int
    live: list[LiveOut] = field(default_factory=list)
    fault: Fault | None = None


def predicate_mask(state: State, g: int, pred: Predicate) -> int:
    """Lanes where a predicate operand holds."""
    full = state.config.full_mask
    value = full if pred.index is None else state.predicates[g][pred.index]
    return value ^ full if pred.negate else value


def execute_block(state: State, block: Block, index: int, g: int, mask: int) -> BlockResult:
    """Executes `block`, block number `index`, for the lanes `mask` of pass `g`.

    Memory and program counters change. Live-outs are returned, not written: the records write the
    register file.
    """
    config = state.config
    results: dict[Slot, list[int]] = {}
    flags: dict[Slot, int] = {}
    out = BlockResult(results, mask)
    for slot in Slot:
        code = block.slots.get(slot)
        if code is None:
            results[slot] = [0] * config.lanes
            continue
        pred = predicate_mask(state, g, code.pred)
        b = [_operand(state, results, slot, code, code.b, g, i) for i in range(config.lanes)]
        if slot is Slot.MEM:
            results[slot] = _access_memory(state, code, results[Slot.A0], b, pred, out)
            continue
        a = [_operand(state, results, slot, code, code.a, g, i) for i in range(config.lanes)]
        instruction = INSTRUCTIONS[code.name]
        unit = instruction.unit
        select = pred
        if isinstance(unit, Alu) and unit.flag == "forward":
            select = flags.get(Slot.A1, 0)
        results[slot] = [
            instruction.semantics(a[i], b[i], bool(select >> i & 1)) for i in range(config.lanes)
        ]
        if isinstance(unit, Alu) and unit.result == "ballot":
            votes = sum(bit << i for i, bit in enumerate(results[slot]) if out.mask >> i & 1)
            results[slot] = [votes] * config.lanes
        if instruction.is_compare:
            flags[slot] = sum(v << i for i, v in enumerate(results[slot]))
    if out.fault is None:
        _branch(state, block, g, flags, out)
        for i in range(config.lanes):
            if mask & ~out.mask & 1 << i:
                # A lane that lost its bank runs this block again, whatever it waited for before.
                state.pcs[g][i], state.statuses[g][i] = index, Status.RUN
    _collect_live(state, block, g, out)
    return out


def _operand(
    state: State,
    results: dict[Slot, list[int]],
    slot: Slot,
    code: SlotCode,
    operand: Operand,
    g: int,
    lane: int,
) -> int:
    match operand.source:
        case Source.ZERO:
            return 0
        case Source.REG:
            return state.registers[g][operand.register][lane]
        case Source.IMM:
            return code.imm
        case Source.TID:
            return g * state.config.lanes + lane
        case Source.CTAID:
            return state.ctaid
        case forward:
            return results[FORWARDS[slot][forward]][lane]


def _access_memory(
    state: State,
    code: SlotCode,
    address: list[int],
    data: list[int],
    pred: int,
    out: BlockResult,
) -> list[int]:
    config = state.config
    unit = INSTRUCTIONS[code.name].unit
    assert isinstance(unit, LoadStore)
    active = [i for i in range(config.lanes) if out.mask & pred & 1 << i]
    if any(address[i] >> 2 >= config.memory_words for i in active):
        out.fault = Fault.OUT_OF_RANGE
    elif any(address[i] % unit.size for i in active):
        out.fault = Fault.MISALIGNED
    if out.fault is not None:
        return [0] * config.lanes
    word = {i: address[i] >> 2 for i in active}
    for j in active:
        for i in active:
            conflict = i < j and word[i] % config.lanes == word[j] % config.lanes
            if conflict and (word[i] != word[j] or unit.exclusive):
                out.mask &= ~(1 << j)
    winners = [i for i in active if out.mask >> i & 1]
    loaded = [0] * config.lanes
    for i in winners:
        if unit.load:
            loaded[i] = state.memory[word[i]]
            if state.log is not None:
                state.log.load(word[i])
    if unit.store and unit.size < 4:
        return _store_parts(state, unit.size, address, data, active)
    if unit.store:
        for i in reversed(winners):
            state.memory[word[i]] = data[i]
            if state.log is not None:
                state.log.writes.add(word[i])
    return loaded


def _store_parts(
    state: State, size: int, address: list[int], data: list[int], active: list[int]
) -> list[int]:
    """Stores the words that neighbouring lanes make together; the result is 1 in other lanes."""
    lanes, count = state.config.lanes, 4 // size
    left = [int(i in active) for i in range(lanes)]
    for first in range(0, lanes - count + 1, count):
        word, misplaced = divmod(address[first], 4)
        whole = all(
            first + k in active and address[first + k] - address[first] == k * size
            for k in range(count)
        )
        below = any(address[i] >> 2 & lanes - 1 == word & lanes - 1 for i in active if i < first)
        if whole and not misplaced and not below:
            parts = [data[first + k] & (1 << 8 * size) - 1 for k in range(count)]
            state.memory[word] = sum(part << 8 * size * k for k, part in enumerate(parts))
            if state.log is not None:
                state.log.writes.add(word)
            left[first : first + count] = [0] * count
    return left


def _branch(state: State, block: Block, g: int, flags: dict[Slot, int], out: BlockResult) -> None:
    config, branch = state.config, block.branch
    match branch.cond:
        case CondSource.ALWAYS:
            cond = config.full_mask
        case CondSource.PRED:
            cond = state.predicates[g][branch.pred]
        case CondSource.FLAG_A1:
            cond = flags.get(Slot.A1, 0)
        case CondSource.FLAG_A2:
            cond = flags.get(Slot.A2, 0)
    if branch.negate:
        cond ^= config.full_mask
    if branch.trap and cond & out.mask:
        out.fault = Fault.TRAP
    for i in range(config.lanes):
        if out.mask >> i & 1:
            taken = bool(cond >> i & 1)
            target = branch.taken if taken else branch.next
            status = Status(branch.taken_status if taken else branch.next_status)
            state.pcs[g][i] = config.rom_blocks - 1 if status is Status.EXIT else target
            state.statuses[g][i] = status


def _collect_live(state: State, block: Block, g: int, out: BlockResult) -> None:
    for slot in block.live_slots():
        code = block.slots[slot]
        unit = INSTRUCTIONS[code.name].unit
        write = out.mask
        if not (isinstance(unit, Alu) and unit.flag == "pred"):
            write &= predicate_mask(state, g, code.pred)
        out.live.append(LiveOut(slot, code.dst, code.dst_index, out.results[slot], write))
