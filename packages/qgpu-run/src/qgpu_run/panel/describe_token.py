"""Tokens in words."""

from __future__ import annotations

from qgpu_isa.formats import linear_shift
from qgpu_isa.machine_config import NIBBLE_BITS, MachineConfig
from qgpu_isa.program import Status
from qgpu_isa.vocabulary import Fault, TokenClass

from qgpu_run.launch import FAULT_TEXT
from qgpu_run.panel.machine_view import TokenNote

STOP_TEXT = {
    Status.RUN: "waits",
    Status.WARP: "waits for its warp",
    Status.CTA: "waits for its CTA",
    Status.EXIT: "is done",
}


def token_name(note: TokenNote) -> str:
    """The token as the docs write it."""
    return f"text token {-1 - note.token_id}" if note.token is None else str(note.token)


def meaning(note: TokenNote, config: MachineConfig) -> str:
    """What a decoded token says, in a few words."""
    token = note.token
    if token is None:
        return "not a token of the machine"
    values, to = token.values, f"{note.target} = "
    match token.cls:
        case TokenClass.EXEC:
            return f"pass {values[1]} runs block {values[0]}"
        case TokenClass.MASK:
            return f"pass {values[1]} has lanes {lanes_text(values[0], config)}"
        case TokenClass.STOP:
            g = "pass" if note.run is None else f"pass {note.run.pass_}"
            status = Status(values[0])
            at = "" if status is Status.EXIT else f", block {values[1]}"
            return f"{g} {STOP_TEXT[status]}{at}"
        case TokenClass.END:
            return f"CTA {note.cta} has ended"
        case TokenClass.FAULT:
            return FAULT_TEXT[Fault(values[0])]
        case TokenClass.BITS:
            return f"{to}{_bits(values[0], config)}"
        case TokenClass.UNIFORM:
            return f"{to}{values[0]} in all lanes"
        case TokenClass.LINEAR:
            return f"{to}{values[0] << linear_shift(config, token.cls)} + lane"
        case TokenClass.LINEAR4:
            return f"{to}{values[0] << linear_shift(config, token.cls)} + 4 lane"
        case TokenClass.SAME:
            return f"{note.target} stays"
        case TokenClass.WORD:
            return f"{to}one word, follows"
        case TokenClass.GROUP:
            low, high = note.lanes or (0, 0)
            part = "" if values[3] == 0 else ", the rest"
            first = f"{_lowest(values[0], high - low + 1)} and {_count(values[1], 'nibble')}"
            return f"{note.target}, lanes {low}-{high}: {first}{part}"
        case TokenClass.ROW:
            first = f"{_lowest(values[0], config.lanes)} and {_count(values[1], 'pair')}"
            return f"{note.target}: {first}"
        case TokenClass.RAW if note.lanes is not None:
            count = note.lanes[1] - note.lanes[0] + 1
            size = config.payload_bits // count
            what = "nibble" if size == NIBBLE_BITS else "pair"
            pieces = [values[0] >> size * i & (1 << size) - 1 for i in range(count)]
            return f"  {what} {note.piece} = {' '.join(f'{n:x}' for n in pieces)}"
        case TokenClass.RAW:
            return f"  part {note.piece} = {values[0]:0{config.payload_bits // 4}x}"
    return "setup"


def lanes_text(mask: int, config: MachineConfig) -> str:
    """Lanes of a mask, as in `0-3 6`."""
    if not mask:
        return "none"
    parts, lane = [], 0
    while lane < config.lanes:
        if mask >> lane & 1:
            first = lane
            while mask >> lane + 1 & 1:
                lane += 1
            parts.append(str(first) if first == lane else f"{first}-{lane}")
        lane += 1
    return " ".join(parts)


def _bits(mask: int, config: MachineConfig) -> str:
    if mask in (0, config.full_mask):
        return f"{int(mask > 0)} in all lanes"
    return f"1 in lanes {lanes_text(mask, config)}"


def _lowest(bits: int, count: int) -> str:
    return "bit " + " ".join(str(bits >> i & 1) for i in range(count))


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"
