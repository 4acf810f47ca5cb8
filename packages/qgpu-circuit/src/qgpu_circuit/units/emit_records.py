"""Records of live-outs: the choice of their format, their leads, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from qgpu_isa import Slot, TokenClass
from qgpu_isa.formats import linear_shift
from qgpu_isa.machine_config import CHUNKS_PER_RECORD, NIBBLE_BITS, WORD_BITS
from qgpu_isa.vocabulary import WORD_NIBBLES

from qgpu_circuit.gates import all_of, any_of, match, relu, step, step_neurons
from qgpu_circuit.netlist import Lin, NetId, Neuron, lin, total
from qgpu_circuit.signals import Machine
from qgpu_circuit.units.code_writer import CodeWriter
from qgpu_circuit.units.front_end import FrontEnd
from qgpu_circuit.units.live_out import LiveOut
from qgpu_circuit.units.operands import Word

ONE = Lin.of(1)
UNIFORM_FORMS = (TokenClass.UNIFORM, TokenClass.LINEAR, TokenClass.LINEAR4)


@dataclass(frozen=True)
class RowBits:
    """What the lanes of a row have in common.

    Attributes:
        mixed: per bit, whether lanes differ in it.
        present: per bit, whether any lane has it.
        beyond: whether any word is above 1.
    """

    mixed: list[Lin]
    present: list[Lin]
    beyond: Lin


@dataclass(frozen=True)
class Pieces:
    """How many pieces above the lowest bit words take.

    Attributes:
        unfit: per number of pieces, whether it holds the words neither unsigned nor signed.
        unsigned_unfit: per number of pieces, whether it does not hold them unsigned.
    """

    unfit: list[Lin]
    unsigned_unfit: list[Lin]

    def needed(self) -> list[Lin]:
        """One-hot over the number of pieces, where the last one holds the words."""
        return [before - now for before, now in pairwise([ONE, *self.unfit])]


@dataclass(frozen=True)
class GroupChoice:
    """How each group would be sent, and which is.

    Attributes:
        sent: per group, whether it is the first that changed.
        last: per group, whether no group behind it changed.
        nibbles: per group.
        row: pairs of the row, if it may be sent as a whole.
        in_row: whether it is.
        any_changed: whether any group changed.
    """

    sent: list[Lin]
    last: list[Lin]
    nibbles: list[Pieces]
    row: Pieces | None
    in_row: Lin
    any_changed: Lin


def build_records(
    m: Machine, out: CodeWriter, front: FrontEnd, live: LiveOut, any_fault: Lin
) -> None:
    """Drives the code of all tokens of records; see `qgpu_isa.formats.choose_format`."""
    bits = _row_bits(m, live)
    groups = _choose_groups(m, live)
    _leads(m, out, live, bits, groups, any_fault)
    _continue(m, out, front, live, bits)


def _row_bits(m: Machine, live: LiveOut) -> RowBits:
    n, lanes, row = m.netlist, m.config.lanes, live.row
    mixed, present = [], []
    for i in range(WORD_BITS):
        mix, some = n.net(f"mixed[{i}]"), n.net(f"present[{i}]")
        count = total(word[i] for word in row)
        n.add(
            f"mixed[{i}]",
            [
                Neuron(count, ONE, ((mix, 1.0), (some, 1.0))),
                Neuron(count - 1, ONE, ((mix, -1.0), (some, -1.0))),
                Neuron(count - (lanes - 1), ONE, ((mix, -1.0),)),
            ],
        )
        mixed.append(lin(mix))
        present.append(lin(some))
    beyond = step(n, "beyond", total(bit for word in row for bit in word[1:]))
    return RowBits(mixed, present, beyond)


def _choose_groups(m: Machine, live: LiveOut) -> GroupChoice:
    n, config, row = m.netlist, m.config, live.row
    every = range(config.groups)
    changed = [step(n, f"changed[{g}]", live.changes[g]) for g in every]
    nibbles = []
    for g in every:
        words = row[g * config.group_lanes : (g + 1) * config.group_lanes]
        limits = [1 + NIBBLE_BITS * count for count in range(WORD_NIBBLES)]
        fit = _count_pieces(m, f"{g}", words, limits)
        # Eight hold everything.
        nibbles.append(Pieces([*fit.unfit, Lin()], [*fit.unsigned_unfit, Lin()]))
    whole, in_row = None, Lin()
    if config.groups > 1:
        limits = [1 + config.row_bits * count for count in range(CHUNKS_PER_RECORD + 1)]
        gate = total(changed) - config.groups
        net = n.net("in_row")
        n.add("in_row", [Neuron(gate + 1, ONE, ((net, 1.0),))])
        whole = _count_pieces(m, "row", row, limits, (net, gate))
        in_row = lin(net)
    return GroupChoice(
        sent=[relu(n, f"sent[{g}]", changed[g] - total(changed[:g])) for g in every],
        last=[1 - step(n, f"behind[{g}]", total(changed[g + 1 :])) for g in every],
        nibbles=nibbles,
        row=whole,
        in_row=in_row,
        any_changed=step(n, "any_changed", total(changed)),
    )


def _count_pieces(
    m: Machine,
    name: str,
    words: list[Word],
    limits: list[int],
    taken: tuple[NetId, Lin] | None = None,
) -> Pieces:
    """Which of some widths hold words.

    Args:
        limits: the widths.
        taken: a net to take 1 from where the words do not fit the last of them, and a gate that is
            0 where that holds, negative elsewhere.
    """
    n = m.netlist
    unfit, unsigned_unfit = [], []
    for index, first in enumerate(limits):
        above = total(b for w in words for b in w[first:])
        plain = step(n, f"unfit[{name}][{first}]", above)
        unsigned_unfit.append(plain)
        net = n.net(f"unfit_signed[{name}][{first}]")
        neurons = []
        for word in words:
            ones = total(word[first - 1 :])
            neurons += step_neurons(net, ones)
            neurons.append(Neuron(ones - (WORD_BITS - first), ONE, ((net, -1.0),)))
        n.add(f"unfit_signed[{name}][{first}]", neurons)
        both = lin(net) + (plain - 1) * len(words)
        unfit.append(step(n, f"unfit_both[{name}][{first}]", both))
        if taken is not None and index == len(limits) - 1:
            to, gate = taken
            less = step_neurons(to, both + gate * 2 * len(words), -1.0)
            n.add(f"unfit_both[{name}]/taken", less)
    return Pieces(unfit, unsigned_unfit)


def _leads(
    m: Machine,
    out: CodeWriter,
    live: LiveOut,
    bits: RowBits,
    groups: GroupChoice,
    any_fault: Lin,
) -> None:
    """First tokens of records, but for the second one of a group."""
    n, config, vocab, row = m.netlist, m.config, m.vocab, live.row
    begins = live.begins
    small = vocab.small_bits
    plain = begins + bits.beyond - 1
    forms = {TokenClass.BITS: relu(n, "form/BITS", begins - bits.beyond)}
    values = {TokenClass.BITS: [word[0] for word in row]}
    for cls in UNIFORM_FORMS:
        shift = linear_shift(config, cls)
        inside = range(max(0, shift - config.lane_bits), shift)
        wrong = total(
            1 - row[lane][i] if lane >> k & 1 else row[lane][i]
            for k, i in enumerate(inside)
            for lane in range(config.lanes)
        )
        others = total(bits.mixed[i] for i in range(WORD_BITS) if i not in inside)
        # Bits below the lanes' are not sent.
        unsent = total([*row[0][: inside.start], *row[0][shift + small :]])
        forms[cls] = relu(n, f"form/{cls.name}", plain - wrong - others - unsent)
        values[cls] = row[0][shift : shift + small]
    uniform = relu(n, "form/any_uniform", plain - total(bits.mixed))
    rest = begins - total(forms.values())
    word = uniform - forms[TokenClass.UNIFORM] + groups.any_changed - 1
    forms[TokenClass.SAME] = rest - groups.any_changed
    forms[TokenClass.WORD] = word
    values[TokenClass.SAME] = values[TokenClass.WORD] = []
    for cls, form in forms.items():
        form = form - any_fault
        out.drive(f"{cls.name}/class", form, out.class_bits(cls))
        for i, bit in enumerate(values[cls]):
            out.drive(f"{cls.name}/value[{i}]", form + bit - 1, {i: 1})
        _drive_slot(out, live, cls, form)
    several = rest + groups.any_changed - 1 - uniform + forms[TokenClass.UNIFORM] - any_fault
    if groups.row is not None:
        whole = several + groups.in_row - 1
        out.drive("ROW/class", whole, out.class_bits(TokenClass.ROW))
        _drive_slot(out, live, TokenClass.ROW, whole)
        _drive_pieces(out, TokenClass.ROW, "ROW", "pairs", whole, groups.row, row)
    group = several - groups.in_row
    out.drive("GROUP/class", group, out.class_bits(TokenClass.GROUP))
    _drive_slot(out, live, TokenClass.GROUP, group)
    for g, sent in enumerate(groups.sent):
        of_group = group + sent - 1
        number = out.field(TokenClass.GROUP, "group", g)
        out.drive(f"GROUP/group[{g}]", of_group, number)
        out.drive(
            f"GROUP/last[{g}]",
            of_group + groups.last[g] - 1,
            out.field(TokenClass.GROUP, "last", 1),
        )
        words = row[g * config.group_lanes : (g + 1) * config.group_lanes]
        _drive_pieces(
            out, TokenClass.GROUP, f"GROUP[{g}]", "nibbles", of_group, groups.nibbles[g], words
        )


def _drive_pieces(
    out: CodeWriter,
    cls: TokenClass,
    name: str,
    field: str,
    gate: Lin,
    pieces: Pieces,
    words: list[Word],
) -> None:
    """What a lead says of its words: their lowest bits, how many pieces follow, the sign."""
    for place, word in zip(out.m.vocab.field_bits(cls, "bits"), words, strict=True):
        out.drive(f"{name}/bits", gate + word[0] - 1, {place: 1})
    for count, needed in enumerate(pieces.needed()):
        so_many = gate + needed - 1
        out.drive(f"{name}/{field}[{count}]", so_many, out.field(cls, field, count))
        out.drive(
            f"{name}/signed[{count}]",
            so_many + pieces.unsigned_unfit[count] - 1,
            out.field(cls, "signed", 1),
        )


def _drive_slot(out: CodeWriter, live: LiveOut, cls: TokenClass, form: Lin) -> None:
    for k in Slot:
        gate = form + live.sending[k] - 1
        out.drive(f"{cls.name}/slot[{k.name}]", gate, out.field(cls, "slot", k))


def _continue(m: Machine, out: CodeWriter, front: FrontEnd, live: LiveOut, bits: RowBits) -> None:
    """Continuation tokens, and the second lead of a group of long words."""
    n, config, vocab = m.netlist, m.config, m.vocab
    # On the lead itself, the record's fields are those of this token: the lead memory returns them.
    fields = {
        name: front.lead_field(m, TokenClass.GROUP, name) for name in ("nibbles", "part", "group")
    }

    def at(cls: TokenClass, place: int) -> Lin:
        """Whether the token stands before RAW token `place` of a record of a class."""
        return all_of(front.position[place], front.lead[cls]) if place else front.is_[cls]

    def send(name: str, words: list[Word], chosen: Lin, first: int, size: int) -> None:
        """Drives a RAW token with `size` bits of every word from bit `first` on."""
        for lane, word in enumerate(words):
            for i, bit in enumerate(word[first : first + size]):
                out.drive(name, chosen + bit - 1, {size * lane + i: 1})

    for nibble in range(WORD_NIBBLES):
        part, place = divmod(nibble, CHUNKS_PER_RECORD)
        here = all_of(at(TokenClass.GROUP, place), match(fields["part"], part))
        counts = [match(fields["nibbles"], c) for c in range(nibble + 1, WORD_NIBBLES + 1)]
        for g in range(config.groups):
            of_group = match(fields["group"], g)
            name = f"nibble[{nibble}][{g}]"
            chosen = any_of(n, name, [all_of(here, of_group, c) for c in counts])
            words = live.row[g * config.group_lanes : (g + 1) * config.group_lanes]
            send(f"RAW/{name}", words, chosen, 1 + NIBBLE_BITS * nibble, NIBBLE_BITS)
    if config.groups > 1:
        sent = front.lead_field(m, TokenClass.ROW, "pairs")
        for pair in range(CHUNKS_PER_RECORD):
            here = at(TokenClass.ROW, pair)
            counts = [match(sent, c) for c in range(pair + 1, CHUNKS_PER_RECORD + 1)]
            chosen = any_of(n, f"pair[{pair}]", [all_of(here, c) for c in counts])
            first = 1 + config.row_bits * pair
            send(f"RAW/pair[{pair}]", live.row, chosen, first, config.row_bits)
    here = all_of(at(TokenClass.GROUP, CHUNKS_PER_RECORD), match(fields["part"], 0))
    longer = range(CHUNKS_PER_RECORD + 1, WORD_NIBBLES + 1)
    again = any_of(n, "again", [all_of(here, match(fields["nibbles"], c)) for c in longer])
    out.drive(
        "GROUP/again",
        again,
        out.class_bits(TokenClass.GROUP) | out.field(TokenClass.GROUP, "part", 1),
    )
    for name in ("bits", "nibbles", "signed", "group", "last", "slot"):
        for place in vocab.field_bits(TokenClass.GROUP, name):
            out.drive("GROUP/again", again + front.lead_payload[place] - 1, {place: 1})
    raw = config.payload_bits
    for place in range(WORD_BITS // raw):
        chosen = relu(n, f"word[{place}]", at(TokenClass.WORD, place))
        for i in range(raw):
            bit = bits.present[raw * place + i]
            out.drive(f"RAW/word[{place}]", chosen + bit - 1, {i: 1})
