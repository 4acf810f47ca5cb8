"""Where the token stands in the records of a live-out."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa import Slot, TokenClass
from qgpu_isa.machine_config import CHUNKS_PER_RECORD, WORD_BITS
from qgpu_isa.vocabulary import WORD_NIBBLES

from qgpu_circuit.gates import all_of, any_of, match
from qgpu_circuit.netlist import Lin
from qgpu_circuit.signals import Machine, field_is

DIRECT = (TokenClass.BITS, TokenClass.UNIFORM, TokenClass.LINEAR, TokenClass.LINEAR4)
"""Live-out records of one token that write a row."""


@dataclass(frozen=True)
class RowRecords:
    """Signals of the records of live-outs.

    Attributes:
        stage: per part, whether the token ends a record that holds that part of a row.
        writes: per slot and group, whether the token ends a record that writes that group.
        finished: per slot, whether the token ends a live-out of that slot.
        more: per slot, whether the token ends a group's record and another group follows.
        current: per slot, whether the token is in a live-out of that slot that goes on.
    """

    stage: list[Lin]
    writes: list[list[Lin]]
    finished: list[Lin]
    more: list[Lin]
    current: list[Lin]


def build_row_records(
    m: Machine,
    is_: dict[TokenClass, Lin],
    lead: dict[TokenClass, Lin],
    lead_payload: list[Lin],
    conditions: dict[int, list[Lin]],
) -> RowRecords:
    """Where in a live-out's records the token stands.

    Args:
        is_, lead, lead_payload: see FrontEnd.
        conditions: per number of RAW tokens that end here, bits that are all 1 if it is that.
    """
    n, config, vocab = m.netlist, m.config, m.vocab

    def field(name: str, cls: TokenClass = TokenClass.GROUP) -> list[Lin]:
        return [lead_payload[i] for i in vocab.field_bits(cls, name)]

    nibbles, part = field("nibbles"), field("part")
    last = field("last")[0]

    def at(cls: TokenClass, raws: int) -> list[Lin]:
        """Bits that are all 1 if the token is number `raws` behind a lead of a class, or is it."""
        return [*conditions[raws], lead[cls]] if raws else [is_[cls]]

    ends: dict[int, Lin] = {}
    for count in range(WORD_NIBBLES + 1):
        parts, rest = divmod(max(count - 1, 0), CHUNKS_PER_RECORD)
        place = at(TokenClass.GROUP, rest + 1 if count else 0)
        ends[count] = all_of(*place, match(nibbles, count), match(part, parts))
    row_ends: dict[int, Lin] = {}
    if config.groups > 1:
        pairs = field("pairs", TokenClass.ROW)
        for count in range(CHUNKS_PER_RECORD + 1):
            row_ends[count] = all_of(*at(TokenClass.ROW, count), match(pairs, count))
    word_ends = all_of(*conditions[WORD_BITS // config.payload_bits], lead[TokenClass.WORD])
    # The first record of words of more nibbles than fit one.
    goes_on = all_of(*at(TokenClass.GROUP, CHUNKS_PER_RECORD), match(part, 0))
    longer = [goes_on + match(nibbles, count) - 1 for count in ends if count > CHUNKS_PER_RECORD]
    short = [gate for count, gate in ends.items() if 0 < count <= CHUNKS_PER_RECORD]
    short += [gate for count, gate in row_ends.items() if count]
    long = [gate for count, gate in ends.items() if count > CHUNKS_PER_RECORD]
    stage = [any_of(n, "stage[0]", [*short, *longer, word_ends]), any_of(n, "stage[1]", long)]
    slots, groups = field("slot"), field("group")
    word_slots, row_slots = field("slot", TokenClass.WORD), field("slot", TokenClass.ROW)
    writes, finished, more, current = [], [], [], []
    for k in Slot:
        direct = m.input(f"direct[{k.name}]", field_is(vocab, DIRECT, "slot", k))
        same = m.input(f"same[{k.name}]", field_is(vocab, (TokenClass.SAME,), "slot", k))
        leads = (TokenClass.GROUP, TokenClass.ROW, TokenClass.WORD)
        begun = m.input(f"begun[{k.name}]", field_is(vocab, leads, "slot", k))
        of_slot = match(slots, k)
        word = all_of(word_ends, match(word_slots, k))
        ended = [all_of(gate, of_slot) for gate in ends.values()]
        rows = [all_of(gate, match(row_slots, k)) for gate in row_ends.values()]
        writes.append(
            [
                any_of(
                    n,
                    f"writes[{k.name}][{g}]",
                    [direct, word, *rows, *(all_of(gate, match(groups, g)) for gate in ended)],
                )
                for g in range(config.groups)
            ]
        )
        done = [direct, same, word, *rows, *(all_of(gate, last) for gate in ended)]
        finished.append(any_of(n, f"finished[{k.name}]", done))
        more.append(any_of(n, f"more[{k.name}]", [gate - last for gate in ended]))
        in_group = all_of(is_[TokenClass.RAW], lead[TokenClass.GROUP], of_slot)
        in_word = all_of(is_[TokenClass.RAW], lead[TokenClass.WORD], match(word_slots, k))
        inside = [begun, in_group, in_word]
        if config.groups > 1:
            inside.append(all_of(is_[TokenClass.RAW], lead[TokenClass.ROW], match(row_slots, k)))
        current.append(any_of(n, f"current[{k.name}]", inside))
    return RowRecords(
        stage=stage,
        writes=writes,
        finished=finished,
        more=more,
        current=current,
    )
