"""Listings of program images: one block a paragraph, one slot a line.

    .machine nano
    .program scale
    block 0:                            ; scale.cu:3
      A0   lea2    tid, #64
      MEM  ld                           -> r1
      A2   add     MEM, r1              -> r2   @!p0
      branch flag A2 ? exit : wait cta 1

A slot line is the slot, the mnemonic, its operands, `-> destination` and `@guard`. Operands are
`r3`, `#imm` (decimal, `0x` or negative; one a slot), `tid`, `ctaid`, `zero` and results of earlier
slots by slot name. Instructions that select by a predicate take it as their last operand
(`sel r1, r2, !p0`); `pt` is the predicate that always holds. Every block ends with a branch line:
`branch TARGET` or `branch CONDITION ? TARGET : TARGET`. Conditions are `p0`, `flag A1`, `flag A2`
or their negation with `!`; targets are a block, `wait warp BLOCK`, `wait cta BLOCK`, `exit` and,
for lanes that take the branch, `trap`. Blocks are numbered from 0 in order; a written listing may
name them instead (`block loop:`).

A comment behind `block N:` or alone on a line right below it is kept in `Block.source`; other
comments are dropped.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields

from qgpu_isa.canonical import canonical_image, operand_use
from qgpu_isa.instruction import Slot
from qgpu_isa.machine_config import PROFILES, WORD_BITS, MachineConfig
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
from qgpu_isa.text_to_image import PLAIN_OPERANDS, STATUS_WORDS, text_to_image

__all__ = ["block_to_text", "branch_to_text", "image_to_text", "slot_to_text", "text_to_image"]

_PLAIN_NAMES = {source: name for name, source in PLAIN_OPERANDS.items()}
_STATUS_NAMES = {status: words for words, status in STATUS_WORDS.items()}
_SMALL = 4096
"""Immediates nearer to 0 than this are written in decimal."""


def image_to_text(image: ProgramImage) -> str:
    """The listing of an image.

    `text_to_image` reads it back to `canonical_image(image)`.
    """
    image = canonical_image(image)
    lines = [f".machine {_machine(image.config)}", f".program {_name(image.name)}"]
    for index, block in enumerate(image.blocks):
        lines += ["", block_to_text(block, index)]
    return "\n".join(lines) + "\n"


def block_to_text(block: Block, index: int) -> str:
    """The paragraph of one canonical block, without a final line break."""
    head = f"block {index}:"
    if block.source:
        head = f"{head:<36}; {block.source[0]}"
    lines = [head, *(f"  ; {source}" for source in block.source[1:])]
    lines += [f"  {slot_to_text(slot, block.slots[slot])}" for slot in Slot if slot in block.slots]
    lines.append(f"  {branch_to_text(block.branch)}")
    return "\n".join(lines)


def slot_to_text(slot: Slot, code: SlotCode) -> str:
    """The line of one slot."""
    use = operand_use(code.name)
    operands = []
    if use.a:
        operands.append(_operand(slot, code.a, code.imm))
    if use.b:
        operands.append(_operand(slot, code.b, code.imm))
    if use.selector:
        operands.append(_predicate(code.pred))
    text = f"{slot.name:<4} {code.name:<7} {', '.join(operands)}"
    if code.dst is not DstKind.NONE:
        letter = "r" if code.dst is DstKind.REG else "p"
        text = f"{text:<33} -> {letter}{code.dst_index}"
    if not use.selector and code.pred != Predicate():
        text = f"{text:<40} @{_predicate(code.pred)}"
    return text.rstrip()


def branch_to_text(branch: Branch) -> str:
    """The branch line of a block."""
    taken = "trap" if branch.trap else _target(branch.taken, branch.taken_status)
    if branch.cond is CondSource.ALWAYS:
        return f"branch {taken}"
    condition = {
        CondSource.PRED: f"p{branch.pred}",
        CondSource.FLAG_A1: "flag A1",
        CondSource.FLAG_A2: "flag A2",
    }[branch.cond]
    negation = "!" if branch.negate else ""
    return f"branch {negation}{condition} ? {taken} : {_target(branch.next, branch.next_status)}"


def _machine(config: MachineConfig) -> str:
    if PROFILES.get(config.name) == config:
        return config.name
    sizes = (f"{f.name}={getattr(config, f.name)}" for f in fields(config) if f.name != "name")
    return f"{_name(config.name)} {' '.join(sizes)}"


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else json.dumps(name)


def _operand(slot: Slot, operand: Operand, imm: int) -> str:
    if operand.source is Source.REG:
        return f"r{operand.register}"
    if operand.source is Source.IMM:
        return f"#{_immediate(imm)}"
    if operand.source in _PLAIN_NAMES:
        return _PLAIN_NAMES[operand.source]
    return FORWARDS[slot][operand.source].name


def _immediate(word: int) -> str:
    if word < _SMALL:
        return str(word)
    if word > (1 << WORD_BITS) - _SMALL:
        return str(word - (1 << WORD_BITS))
    return hex(word)


def _predicate(pred: Predicate) -> str:
    name = "pt" if pred.index is None else f"p{pred.index}"
    return f"!{name}" if pred.negate else name


def _target(block: int, status: Status) -> str:
    words = _STATUS_NAMES[status]
    return words if status is Status.EXIT else f"{words} {block}".strip()
