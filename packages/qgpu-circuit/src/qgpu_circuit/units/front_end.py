"""The token, the tokens before it, and the record it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qgpu_isa import Token, TokenClass
from qgpu_isa.encoding import ROM_PARTS
from qgpu_isa.machine_config import CHUNKS_PER_RECORD, WORD_BITS

from qgpu_circuit.gates import all_of, match, relu
from qgpu_circuit.netlist import Lin
from qgpu_circuit.signals import Machine, class_is, field_bit, from_sign
from qgpu_circuit.units.row_records import RowRecords, build_row_records

LEADS = (
    TokenClass.GROUP,
    TokenClass.ROW,
    TokenClass.WORD,
    TokenClass.PROG,
    TokenClass.MEM,
    TokenClass.CTA,
)
"""Classes whose records go on in RAW tokens."""

CTA_BITS = 16


@dataclass(frozen=True)
class FrontEnd:
    """Signals of the front end; all are bits.

    Attributes:
        payload: payload code of the token.
        is_: per class, whether the token has it.
        window: bits of the last four tokens, this token's first: [tap][bit].
        lead, lead_payload: class and payload of the last token that was not RAW.
        block, pass_, phase: of the last EXEC (or INIT).
        position: per number of continuation tokens so far (1 to 4), whether it is that.
        rows: the records of live-outs.
        mask: lanes that an EXEC token runs.
        init_mask: lanes that exist, on an INIT token.
        program_part: per ROM part, whether the token ends its PROG record.
        memory_done, cta_done: whether the token ends a MEM or CTA record.
    """

    payload: list[Lin]
    is_: dict[TokenClass, Lin]
    window: list[list[Lin]]
    lead: dict[TokenClass, Lin]
    lead_payload: list[Lin]
    block: list[Lin]
    pass_: list[Lin]
    phase: Lin
    position: dict[int, Lin]
    rows: RowRecords
    mask: list[Lin]
    init_mask: list[Lin]
    program_part: list[Lin]
    memory_done: Lin
    cta_done: Lin

    def lead_field(self, m: Machine, cls: TokenClass, name: str) -> list[Lin]:
        """Bits of a field of the last lead token."""
        return [self.lead_payload[i] for i in m.vocab.field_bits(cls, name)]

    def token_field(self, m: Machine, cls: TokenClass, name: str) -> list[Lin]:
        """Bits of a field of this token."""
        return [self.payload[i] for i in m.vocab.field_bits(cls, name)]

    def stored_window(self, m: Machine, bits: int) -> tuple[list[Lin], list[int]]:
        """What `word_window` says, for a head to store: this token's bits, and how many tokens
        back the head's own convolution takes each. No dimension has to carry the window there."""
        raw = m.config.payload_bits
        conts = -(-bits // raw)
        places = [(i, tap) for tap in range(conts - 1, -1, -1) for i in range(raw)][:bits]
        return [self.payload[i] for i, _ in places], [tap for _, tap in places]

    def word_window(self, m: Machine, bits: int) -> list[Lin]:
        """The bits that a record of `bits` bits carried, on its last token."""
        conts = -(-bits // m.config.payload_bits)
        flat = [bit for tap in range(conts - 1, -1, -1) for bit in self.window[tap]]
        return flat[:bits]


def build_front_end(m: Machine) -> FrontEnd:
    """The embedding's nets, the taps, and the control of records."""
    n, config, vocab = m.netlist, m.config, m.vocab
    code = [m.input(f"code[{i}]", _code_sign(m, i)) for i in range(vocab.code_bits)]
    n.code = list(n.inputs)
    payload = [from_sign(x) for x in code[: vocab.payload_code_bits]]
    is_ = {cls: m.input(f"is/{cls.name}", class_is(cls)) for cls in vocab.classes}
    starts = (TokenClass.EXEC, TokenClass.INIT)
    of_pass = (*starts, TokenClass.MASK)
    exec_block = [
        m.input(f"exec/block[{i}]", field_bit(vocab, starts[:1], "block", i))
        for i in range(config.block_bits)
    ]
    exec_pass = [
        m.input(f"exec/pass[{i}]", field_bit(vocab, of_pass, "pass", i))
        for i in range(config.pass_bits)
    ]
    exec_phase = m.input("exec/phase", field_bit(vocab, starts[:1], "phase", 0))
    masked = m.input("init/masked", field_bit(vocab, starts[1:], "masked", 0))

    raw = config.payload_bits
    tapped: list[Lin] = []
    taps: list[int] = []
    for tap in range(1, CHUNKS_PER_RECORD):
        tapped += [*payload[:raw], is_[TokenClass.RAW]]
        taps += [tap] * (raw + 1)
    before = [from_sign(x) for x in m.memory("taps", tapped, write_enable=1, taps=taps)]
    window = [payload[:raw]] + [before[t * (raw + 1) : t * (raw + 1) + raw] for t in range(3)]
    raw_before = [before[t * (raw + 1) + raw] for t in range(3)]

    start = is_[TokenClass.EXEC] + is_[TokenClass.INIT]
    where = m.memory("exec", [*exec_block, *exec_pass, exec_phase], write_enable=start)
    where = [from_sign(x) for x in where]
    leads = [cls for cls in LEADS if cls in is_]
    marks = [is_[cls] for cls in leads]
    record = m.memory("lead", [*marks, *payload], write_enable=1 - is_[TokenClass.RAW])
    record = [from_sign(x) for x in record]
    lead = dict(zip(leads, record, strict=False))
    lead_payload = record[len(leads) :]

    run = [is_[TokenClass.RAW], *raw_before]
    conditions = {
        k: [*run[:k], *([1 - run[k]] if k < CHUNKS_PER_RECORD else [])]
        for k in range(1, CHUNKS_PER_RECORD + 1)
    }
    position = {k: relu(n, f"position[{k}]", all_of(*c)) for k, c in conditions.items()}

    def ends(cls: TokenClass, bits: int) -> list[Lin]:
        return [*conditions[-(-bits // raw)], lead[cls]]

    rows = build_row_records(m, is_, lead, lead_payload, conditions)
    execs, inits = is_[TokenClass.EXEC], is_[TokenClass.INIT]
    lanes = m.memory(
        "lanes",
        [m.input(f"lanes[{i}]", _lane_bit(m, i)) for i in range(config.lanes)],
        write_enable=is_[TokenClass.MASK] + inits - masked,
        write_address=exec_pass,
        read_address=exec_pass,
    )
    mask = [relu(n, f"mask[{i}]", x + execs - 1) for i, x in enumerate(lanes)]
    init_mask = [relu(n, f"init_mask[{i}]", x + inits - 1) for i, x in enumerate(lanes)]
    program = ends(TokenClass.PROG, config.chunk_bits)
    rom_part = [lead_payload[i] for i in vocab.field_bits(TokenClass.PROG, "part")]
    return FrontEnd(
        payload=payload,
        is_=is_,
        window=window,
        lead=lead,
        lead_payload=lead_payload,
        block=where[: config.block_bits],
        pass_=where[config.block_bits : -1],
        phase=where[-1],
        position=position,
        rows=rows,
        mask=mask,
        init_mask=init_mask,
        program_part=[
            relu(n, f"program_part[{p}]", all_of(*program, match(rom_part, p)))
            for p in range(ROM_PARTS * config.chunks_per_slot)
        ],
        memory_done=relu(n, "memory_done", all_of(*ends(TokenClass.MEM, WORD_BITS))),
        cta_done=relu(n, "cta_done", all_of(*ends(TokenClass.CTA, CTA_BITS))),
    )


def _lane_bit(m: Machine, lane: int) -> Callable[[Token], float]:
    """Whether a MASK or INIT gives its pass a lane; nothing is kept of a masked INIT."""
    masks = field_bit(m.vocab, (TokenClass.MASK,), "lanes", lane)
    return lambda token: masks(token) + float(token.cls is TokenClass.INIT)


def _code_sign(m: Machine, bit: int) -> Callable[[Token], float]:
    """Bit `bit` of a token's code, as a sign."""

    def value(token: Token) -> float:
        code = m.vocab.payload(token) | int(token.cls) << m.vocab.payload_code_bits
        return float(2 * (code >> bit & 1) - 1)

    return value
