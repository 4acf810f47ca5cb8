"""The live-out that is being sent: which slot, and its row merged with the register's old one."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa import Slot, TokenClass
from qgpu_isa.machine_config import WORD_BITS
from qgpu_isa.program import DstKind

from qgpu_circuit.gates import any_of, relu
from qgpu_circuit.netlist import Lin, NetId, Neuron, Urgency, lin, total
from qgpu_circuit.signals import Machine, from_sign, sign_match
from qgpu_circuit.units.front_end import FrontEnd
from qgpu_circuit.units.operands import Word
from qgpu_circuit.units.receive import RowWrite, Stretch
from qgpu_circuit.units.register_file import RowFile

ONE = Lin.of(1)


@dataclass(frozen=True)
class LiveOut:
    """The row to send.

    Attributes:
        begins: whether a record begins with the next token.
        sending: per slot, whether the next token belongs to a record of it.
        idle: whether the token ends all records of its block (or there are none).
        row: bits of the merged row, lane by lane.
        changes: per group, the number of bits that differ from the register's old row.
    """

    begins: Lin
    sending: list[Lin]
    idle: Lin
    row: list[Word]
    changes: list[Lin]


@dataclass(frozen=True)
class Choice:
    """Which slot's live-out the token has to send.

    Attributes:
        begins, idle, sending: see LiveOut.
        index: bits of the destination's number.
    """

    begins: Lin
    idle: Lin
    sending: list[Lin]
    index: list[Lin]


def _choose(m: Machine, front: FrontEnd, write: RowWrite) -> Choice:
    """Walks through the block's slots with a destination, in order."""
    n = m.netlist
    execs, finished = front.is_[TokenClass.EXEC], front.rows.finished
    live = [
        any_of(
            n,
            f"live[{k.name}]",
            [_is_kind(write, k, DstKind.REG), _is_kind(write, k, DstKind.PRED)],
        )
        for k in Slot
    ]
    pending = [
        relu(n, f"pending[{k.name}]", live[k] + execs + total(finished[:k]) - 1) for k in Slot
    ]
    done = total(finished)
    first = [pending[k] - total(pending[:k]) for k in Slot]
    sending = [
        any_of(n, f"sending[{k.name}]", [first[k], front.rows.current[k] - done]) for k in Slot
    ]
    index = [
        any_of(n, f"index[{i}]", [sending[k] * 2 + write.rom[k].field("dst")[i] - 2 for k in Slot])
        for i in range(len(write.index))
    ]
    return Choice(
        begins=any_of(n, "begins", [*first, total(front.rows.more)]),
        idle=relu(n, "idle", execs + done - total(pending)),
        sending=sending,
        index=index,
    )


def _is_kind(write: RowWrite, slot: Slot, kind: DstKind) -> Lin:
    return sign_match(write.rom[slot].field("dst_kind"), kind)


def _queue(
    m: Machine, slot: Slot, words: list[Word], write: Lin, read: Lin, outs: list[NetId]
) -> None:
    """Stores a slot's result until its record is sent."""
    flat = [bit for word in words for bit in word]
    for first in range(0, len(flat), m.shape.columns):
        cut = slice(first, first + m.shape.columns)
        m.memory(
            f"queue/{slot.name}[{first // m.shape.columns}]",
            flat[cut],
            write_enable=write,
            read_enable=read,
            outs=outs[cut],
        )


def build_live_out(
    m: Machine,
    front: FrontEnd,
    write: RowWrite,
    registers: RowFile,
    predicates: RowFile,
    results: dict[Slot, list[Word]],
    masks: dict[Slot, list[Lin]],
) -> LiveOut:
    """Queues the results of a block and picks the one the token has to send.

    Args:
        results: per slot, its words.
        masks: per slot, the lanes whose destination it writes.
    """
    n, config = m.netlist, m.config
    execs = front.is_[TokenClass.EXEC]
    with n.urgent(Urgency.EARLY):
        choice = _choose(m, front, write)
    sending, index = choice.sending, choice.index
    old = [n.net(f"old[{i}]") for i in range(config.lanes * WORD_BITS)]
    gates = {
        kind: [sending[k] * 2 + _is_kind(write, k, kind) - 2 for k in Slot]
        for kind in (DstKind.REG, DstKind.PRED)
    }
    low = [old[lane * WORD_BITS] for lane in range(config.lanes)]
    with n.urgent(Urgency.LAST):
        registers.port("old", index, gates[DstKind.REG], outs=old, stretch=Stretch.LAST)
        predicates.port("old", index, gates[DstKind.PRED], outs=low, stretch=Stretch.LAST)

    new = [n.net(f"new[{i}]") for i in range(config.lanes * WORD_BITS)]
    for k in Slot:
        # Queueing a result frees its dimensions; that of the last slot is on the critical path.
        with n.urgent(Urgency.LATE if k is Slot.A2 else Urgency.SOON):
            _queue(m, k, results[k], execs, sending[k], new)
    stored = [masks[k][lane] for k in Slot for lane in range(config.lanes)]
    read = [from_sign(x) for x in m.memory("queue/masks", stored, write_enable=execs)]
    row = []
    changes = [n.net(f"changes[{g}]") for g in range(config.groups)]
    for lane in range(config.lanes):
        writes = any_of(
            n,
            f"writes[{lane}]",
            [sending[k] + read[k * config.lanes + lane] - 1 for k in Slot],
        )
        nets = [n.net(f"row[{lane}][{i}]") for i in range(WORD_BITS)]
        out = ((changes[lane // config.group_lanes], 1.0),)
        neurons = []
        for i, net in enumerate(nets):
            at = lane * WORD_BITS + i
            # Sign codes; a row that was never written reads as 0, which stands for the bit 0.
            now, before = lin(new[at]), lin(old[at])
            neurons.append(Neuron(now + writes * 2 - 2, ONE, ((net, 1.0),)))
            neurons.append(Neuron(before - writes, ONE, ((net, 1.0),)))
            neurons.append(Neuron(now - before + writes * 2 - 2, ONE, out))
            neurons.append(Neuron(before - now + writes * 2 - 3, ONE, out))
        n.add(f"row[{lane}]", neurons)
        row.append([lin(net) for net in nets])
    return LiveOut(choice.begins, sending, choice.idle, row, [lin(net) for net in changes])
