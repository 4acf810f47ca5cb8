"""The program ROM: one head per part of a block's row."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa import Slot, TokenClass
from qgpu_isa.encoding import BRANCH_FIELDS, BRANCH_PART, SLOT_FIELDS, Field

from qgpu_circuit.netlist import Lin
from qgpu_circuit.signals import Machine
from qgpu_circuit.units.front_end import FrontEnd


@dataclass(frozen=True)
class RomRow:
    """Fields of one ROM part of the current block, as sign codes (0 where never written)."""

    bits: dict[int, Lin]
    fields: dict[str, Field]

    def field(self, name: str) -> list[Lin]:
        """Sign codes of a field, lowest bit first."""
        field = self.fields[name]
        return [self.bits[field.low + i] for i in range(field.width)]


def read_rom(m: Machine, front: FrontEnd, part: int, names: tuple[str, ...], tag: str) -> RomRow:
    """A copy of one part of the ROM that holds the named fields.

    Each reader has a copy of its own, so that a field can be fetched in the layer that needs it
    instead of crossing all layers before.
    """
    fields = BRANCH_FIELDS if part == BRANCH_PART else SLOT_FIELDS
    wanted = {fields[name].low + i for name in names for i in range(fields[name].width)}
    config = m.config
    window, taps = front.stored_window(m, config.chunk_bits)
    address = front.lead_field(m, TokenClass.PROG, "block")
    bits: dict[int, Lin] = {}
    for chunk in range(config.chunks_per_slot):
        first = chunk * config.chunk_bits
        columns = [i for i in range(config.chunk_bits) if first + i in wanted]
        if not columns:
            continue
        read = m.memory(
            f"rom/{_part_name(part)}/{tag}[{chunk}]",
            [window[i] for i in columns],
            taps=[taps[i] for i in columns],
            write_enable=front.program_part[part * config.chunks_per_slot + chunk],
            write_address=address,
            read_address=front.block,
        )
        bits.update({first + i: x for i, x in zip(columns, read, strict=True)})
    return RomRow(bits, fields)


def _part_name(part: int) -> str:
    return "branch" if part == BRANCH_PART else Slot(part).name
