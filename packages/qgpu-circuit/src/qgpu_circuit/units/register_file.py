"""Register and predicate files: every operand port is a copy, written by all, read by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from qgpu_isa.machine_config import WORD_BITS
from qgpu_isa.program import DstKind

from qgpu_circuit.gates import any_of, match
from qgpu_circuit.netlist import Lin, NetId, lin
from qgpu_circuit.signals import Machine
from qgpu_circuit.units.front_end import FrontEnd
from qgpu_circuit.units.receive import RowWrite, Stretch


@dataclass(frozen=True)
class FileLayout:
    """How the rows of a file spread over heads.

    A head holds a cut of the rows of a bank; each cut is written with a group of its own. Rows are
    numbered index first, then pass. The top `bank_bits` of the pass select the bank.
    """

    cuts: tuple[slice, ...]
    index_bits: int
    bank_bits: int


class RowFile:
    """A file of rows addressed by (pass, index), read through ports."""

    def __init__(
        self,
        m: Machine,
        front: FrontEnd,
        write: RowWrite,
        *,
        name: str,
        kind: DstKind,
        values: dict[Stretch, list[Lin]],
        cuts: Sequence[int],
        index_bits: int,
    ) -> None:
        """Makes the file's write port.

        Args:
            values: bits of the row that is written, per stretch of layers.
            cuts: bits that each head keeps.
            index_bits: bits of a row's number within a pass.
        """
        self.m, self.front, self.name = m, front, name
        self.values = values
        self.width = sum(cuts)
        self.index = write.index[:index_bits]
        row_bits = (m.shape.rows - 1).bit_length()
        bank_bits = max(0, index_bits + m.config.pass_bits - row_bits)
        ends = accumulate(cuts)
        slices = tuple(slice(end - size, end) for end, size in zip(ends, cuts, strict=True))
        self.layout = FileLayout(slices, index_bits, bank_bits)
        self.pass_low = front.pass_[: m.config.pass_bits - bank_bits]
        self.pass_high = front.pass_[m.config.pass_bits - bank_bits :]
        self.write_enable = [
            [
                any_of(
                    m.netlist,
                    f"{name}/write[{bank}][{group}]",
                    [gate + match(self.pass_high, bank) - 1 for gate in write.to[kind][group]],
                )
                for group in range(len(cuts))
            ]
            for bank in range(1 << bank_bits)
        ]

    def port(
        self,
        name: str,
        index: Sequence[Lin],
        enables: Sequence[Lin],
        outs: Sequence[NetId] | None = None,
        *,
        stretch: Stretch = Stretch.FIRST,
    ) -> list[Lin]:
        """A read port.

        Args:
            stretch: where the port stands.
            index: bits of the row number.
            enables: gates over which the read is enabled (at most one is 1).
            outs: nets to add to, one per column; new ones if not given.

        Returns:
            sign codes, 0 where disabled or never written.
        """
        m, n = self.m, self.m.netlist
        full = f"{self.name}/{name}"
        if outs is None:
            outs = [n.net(f"{full}[{i}]") for i in range(self.width)]
        for bank in range(1 << self.layout.bank_bits):
            select = match(self.pass_high, bank)
            enable = any_of(n, f"{full}/read[{bank}]", [g + select - 1 for g in enables])
            for group, cut in enumerate(self.layout.cuts):
                m.memory(
                    f"{full}/bank{bank}.{group}",
                    self.values[stretch][cut],
                    write_enable=self.write_enable[bank][group],
                    read_enable=enable,
                    write_address=[*self.index, *self.pass_low],
                    read_address=[*list(index)[: self.layout.index_bits], *self.pass_low],
                    outs=outs[cut],
                )
        return [lin(net) for net in outs]


def build_register_file(m: Machine, front: FrontEnd, write: RowWrite) -> RowFile:
    """The registers: rows of one word a lane, a head for each group of lanes."""
    return RowFile(
        m,
        front,
        write,
        name="registers",
        kind=DstKind.REG,
        values=write.values,
        cuts=[m.config.group_lanes * WORD_BITS] * m.config.groups,
        index_bits=m.config.register_bits,
    )


def build_predicate_file(m: Machine, front: FrontEnd, write: RowWrite) -> RowFile:
    """The predicates: rows of one bit a lane; row 0 is never written."""
    return RowFile(
        m,
        front,
        write,
        name="predicates",
        kind=DstKind.PRED,
        values=write.bits,
        cuts=[m.config.lanes],
        index_bits=min(3, (m.config.predicates).bit_length()),
    )


def lanes_of(bits: Sequence[Lin]) -> list[list[Lin]]:
    """A row's bits lane by lane."""
    return [list(bits[i : i + WORD_BITS]) for i in range(0, len(bits), WORD_BITS)]
