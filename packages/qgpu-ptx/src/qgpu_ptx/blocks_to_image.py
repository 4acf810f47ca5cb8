"""Virtual blocks and register numbers to a ProgramImage."""

from __future__ import annotations

from dataclasses import replace

from qgpu_isa.instruction import Slot
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.program import (
    FORWARDS,
    Block,
    Branch,
    CondSource,
    DstKind,
    Operand,
    Predicate,
    ProgramImage,
    SlotCode,
    Source,
    Status,
)

from qgpu_ptx.fit_slots import RELAYS, takes_address
from qgpu_ptx.ir import STORES, ZERO, Edge, Imm, PredUse, Reg, Special, Value
from qgpu_ptx.lowering_errors import machine_limit
from qgpu_ptx.virtual_blocks import Item, PlacedOp, VirtualBlock


def blocks_to_image(
    name: str, blocks: list[VirtualBlock], numbers: dict[Item, int], config: MachineConfig
) -> ProgramImage:
    """The image. Raises MachineLimitError if there are too many blocks."""
    if len(blocks) > config.rom_blocks:
        raise machine_limit(
            config,
            "rom_blocks",
            f"kernel {name} needs {len(blocks)} blocks; machine '{config.name}' holds "
            f"{config.rom_blocks}",
        )
    return _Emitter(blocks, numbers, config).image(name)


class _Emitter:
    def __init__(
        self, blocks: list[VirtualBlock], numbers: dict[Item, int], config: MachineConfig
    ) -> None:
        self.blocks = blocks
        self.numbers = numbers
        self.config = config
        self.index = {block.label: i for i, block in enumerate(blocks)}

    def image(self, name: str) -> ProgramImage:
        image = ProgramImage(self.config, tuple(self._block(b) for b in self.blocks), name)
        image.verify()
        return image

    def _block(self, block: VirtualBlock) -> Block:
        slots: dict[Slot, SlotCode] = {}
        for slot, placed in block.slots.items():
            if slot is Slot.A2 and Slot.A0 in placed.forwards.values():
                relay = next(other for other in RELAYS if other not in block.slots)
                slots[relay] = SlotCode(RELAYS[relay], Operand(_source(relay, Slot.A0)))
                placed = _read_relay(placed, relay)
            slots[slot] = self._code(slot, placed)
            if slot is Slot.MEM and Slot.A0 not in block.slots:
                slots[Slot.A0] = self._address(placed)
        return Block(dict(sorted(slots.items())), self._branch(block), block.sources())

    def _address(self, placed: PlacedOp) -> SlotCode:
        address = placed.op.address
        assert address is not None
        name = "add" if takes_address(placed.op) else address.name
        a, b, imm = self._operands(Slot.A0, {}, address.a, address.b)
        return SlotCode(name, a, b, imm)

    def _code(self, slot: Slot, placed: PlacedOp) -> SlotCode:
        op = placed.op
        name, first, second, pred = op.name, op.a, op.b, op.pred
        if name == "mov":
            name, second = "add", ZERO
        if op.is_memory:
            first, second = ZERO, op.b if op.name in STORES else ZERO
        if name == "sel" and pred is not None and pred.pred in placed.forwards:
            name = "selfwd"
            if pred.negate:
                first, second = second, first
            pred = None
        a, b, imm = self._operands(slot, placed.forwards, first, second)
        code = SlotCode(name, a, b, imm, pred=self._predicate(pred))
        if not placed.live or op.dst is None:
            return code
        kind = DstKind.REG if isinstance(op.dst, Reg) else DstKind.PRED
        return replace(code, dst=kind, dst_index=self.numbers[op.dst])

    def _operands(
        self, slot: Slot, forwards: dict[Item, Slot], first: Value, second: Value
    ) -> tuple[Operand, Operand, int]:
        imm = 0
        operands = []
        for value in (first, second):
            match value:
                case Imm(value=0):
                    operands.append(Operand())
                case Imm(value=number):
                    assert imm in (0, number), "a slot holds one immediate"
                    imm = number
                    operands.append(Operand(Source.IMM))
                case Special.TID:
                    operands.append(Operand(Source.TID))
                case Special.CTAID:
                    operands.append(Operand(Source.CTAID))
                case Reg() if value in forwards:
                    operands.append(Operand(_source(slot, forwards[value])))
                case Reg():
                    operands.append(Operand(Source.REG, self.numbers[value]))
        return operands[0], operands[1], imm

    def _predicate(self, use: PredUse | None) -> Predicate:
        return Predicate() if use is None else Predicate(self.numbers[use.pred], use.negate)

    def _branch(self, block: VirtualBlock) -> Branch:
        end = block.terminator
        taken, taken_status = self._edge(end.taken)
        next_, next_status = self._edge(end.next)
        branch = Branch(
            taken=taken, taken_status=taken_status, next=next_, next_status=next_status,
            trap=end.trap,
        )  # fmt: skip
        if end.cond is None:
            return branch
        if block.flag is not None:
            source = CondSource.FLAG_A1 if block.flag is Slot.A1 else CondSource.FLAG_A2
            return replace(branch, cond=source, negate=end.cond.negate)
        number = self.numbers[end.cond.pred]
        return replace(branch, cond=CondSource.PRED, pred=number, negate=end.cond.negate)

    def _edge(self, edge: Edge) -> tuple[int, Status]:
        if edge.target is None:
            return 0, Status.EXIT
        return self.index[edge.target], edge.status


def _source(slot: Slot, maker: Slot) -> Source:
    """The operand source by which a slot reads the result of an earlier one."""
    return next(source for source, other in FORWARDS[slot].items() if other is maker)


def _read_relay(placed: PlacedOp, relay: Slot) -> PlacedOp:
    """The operation with what A0 makes taken from the slot that hands it on."""
    forwards = {item: relay if s is Slot.A0 else s for item, s in placed.forwards.items()}
    return replace(placed, forwards=forwards)
