"""The assembler: a listing (see `program_text`) to a program image."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields

from qgpu_isa.canonical import operand_use
from qgpu_isa.errors import AssemblyError, ConfigError, ProgramError
from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.listing_line import ListingLine
from qgpu_isa.machine_config import PROFILES, MachineConfig, profile
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
    verify_slot,
)
from qgpu_isa.suggestions import did_you_mean

PLAIN_OPERANDS = {"zero": Source.ZERO, "tid": Source.TID, "ctaid": Source.CTAID}
STATUS_WORDS = {
    "": Status.RUN,
    "wait warp": Status.WARP,
    "wait cta": Status.CTA,
    "exit": Status.EXIT,
}
_RESERVED = re.compile(r"p\d+|flag|exit|trap|wait")
"""Words of a branch line, which cannot name a block."""

_SLOT_NAMES = tuple(slot.name for slot in Slot)
_STATEMENTS = (*_SLOT_NAMES, "branch", "block", ".machine", ".program")


@dataclass(frozen=True)
class _Target:
    """A branch target before labels are resolved."""

    label: str
    status: Status
    trap: bool = False


@dataclass
class _OpenBlock:
    """A block that is being read."""

    line: ListingLine
    label: str
    sources: list[str] = field(default_factory=list)
    slots: dict[Slot, SlotCode] = field(default_factory=dict)
    branch: tuple[ListingLine, Branch, _Target, _Target] | None = None


def text_to_image(
    text: str, filename: str = "<listing>", config: MachineConfig | None = None
) -> ProgramImage:
    """The image of a listing.

    Args:
        text: the listing.
        filename: its name in error messages.
        config: the machine of a listing that has no `.machine` line.

    Raises:
        AssemblyError: with file, line, what was found and what is expected there.
        ProgramError: the program has more blocks than the machine holds.
    """
    return _Assembler(filename, config).assemble(text)


class _Assembler:
    def __init__(self, filename: str, config: MachineConfig | None) -> None:
        self.filename = filename
        self.config = config
        self.name = "program"
        self.blocks: list[_OpenBlock] = []

    def assemble(self, text: str) -> ProgramImage:
        lines = text.split("\n")
        for number, content in enumerate(lines, start=1):
            self._line(ListingLine(content, self.filename, number))
        if not self.blocks:
            raise AssemblyError(
                "the listing has no blocks; expected 'block 0:'", self.filename, len(lines)
            )
        self._close_block()
        labels: dict[str, int] = {}
        for index, block in enumerate(self.blocks):
            if block.label in labels:
                raise block.line.error(f"block '{block.label}' is defined twice")
            labels[block.label] = labels[str(index)] = index
        assert self.config is not None
        image = ProgramImage(
            self.config, tuple(self._finish(block, labels) for block in self.blocks), self.name
        )
        image.verify()
        return image

    def _line(self, line: ListingLine) -> None:
        if line.at_end():
            block = self.blocks[-1] if self.blocks else None
            if block and line.comment and not block.slots and block.branch is None:
                block.sources.append(line.comment)
            return
        word = line.take()
        if word == ".machine":
            self._machine(line)
        elif word == ".program":
            self.name = _name(line, "the program's name")
        elif word == "block":
            self._block(line)
        elif word in (*_SLOT_NAMES, "branch"):
            self._in_block(line, word)
        else:
            raise line.error(
                f"'{word}' begins no statement; expected one of {', '.join(_STATEMENTS)}"
                + did_you_mean(word, _STATEMENTS)
            )
        line.end()

    def _machine(self, line: ListingLine) -> None:
        if self.blocks:
            raise line.error("'.machine' must stand before the first block")
        name = _name(line, "a machine profile")
        sizes = {f.name for f in fields(MachineConfig)} - {"name"}
        values: dict[str, int] = {}
        while not line.at_end():
            size = line.take("a size such as lanes=8")
            if size not in sizes:
                raise line.error(f"a machine has no size '{size}'{did_you_mean(size, sizes)}")
            line.expect("=")
            values[size] = line.integer(f"a number for {size}")
        missing = sizes - values.keys()
        if values and missing:
            raise line.error(f"machine '{name}' lacks {', '.join(sorted(missing))}")
        try:
            self.config = MachineConfig(name=name, **values) if values else profile(name)
        except ConfigError as error:
            hint = "" if values else did_you_mean(name, PROFILES)
            raise line.error(f"{error}{hint}") from None

    def _block(self, line: ListingLine) -> None:
        if self.config is None:
            raise line.error("expected a '.machine' line before the first block")
        self._close_block()
        label = line.take("the block's number or name")
        index = len(self.blocks)
        if label[0].isdigit():
            if label != str(index):
                raise line.error(f"block '{label}' is out of order; expected block {index}")
        elif not label.isidentifier() or _RESERVED.fullmatch(label):
            raise line.error(f"expected the block's number or name, found '{label}'")
        line.expect(":")
        block = _OpenBlock(line, label)
        if line.comment:
            block.sources.append(line.comment)
        self.blocks.append(block)

    def _close_block(self) -> None:
        if self.blocks and self.blocks[-1].branch is None:
            block = self.blocks[-1]
            raise block.line.error(f"block {block.label} has no branch; expected it as last line")

    def _in_block(self, line: ListingLine, word: str) -> None:
        if not self.blocks:
            raise line.error(f"'{word}' stands before the first block; expected 'block 0:'")
        block = self.blocks[-1]
        if block.branch is not None:
            raise line.error(f"'{word}' after the branch of block {block.label}; expected 'block'")
        if word == "branch":
            block.branch = (line, *_branch(line))
            return
        slot = Slot[word]
        if slot in block.slots:
            raise line.error(f"block {block.label} has two instructions in slot {word}")
        assert self.config is not None
        block.slots[slot] = _slot(line, slot, self.config)

    def _finish(self, block: _OpenBlock, labels: dict[str, int]) -> Block:
        assert block.branch is not None
        if Slot.MEM in block.slots and Slot.A0 not in block.slots:
            raise block.line.error(
                f"block {block.label}: MEM needs an address; expected an instruction in slot A0"
            )
        line, branch, taken, next_ = block.branch
        resolved = Branch(
            cond=branch.cond,
            pred=branch.pred,
            negate=branch.negate,
            taken=_resolve(line, taken, labels),
            taken_status=taken.status,
            next=_resolve(line, next_, labels),
            next_status=next_.status,
            trap=taken.trap,
        )
        assert self.config is not None
        if resolved.cond is CondSource.PRED and resolved.pred >= self.config.predicates:
            raise line.error(
                f"predicate p{resolved.pred} does not exist; machine '{self.config.name}' has "
                f"p0 to p{self.config.predicates - 1}"
            )
        return Block(slots=block.slots, branch=resolved, source=tuple(block.sources))


def _name(line: ListingLine, what: str) -> str:
    word = line.take(what)
    return str(json.loads(word)) if word.startswith('"') else word


def _slot(line: ListingLine, slot: Slot, config: MachineConfig) -> SlotCode:
    known = [i.name for i in INSTRUCTIONS if slot in i.slots]
    name = line.take(f"an instruction for slot {slot.name}")
    if name not in INSTRUCTIONS:
        every = [i.name for i in INSTRUCTIONS]
        raise line.error(
            f"unknown instruction '{name}'; slot {slot.name} takes {', '.join(known)}"
            + did_you_mean(name, every)
        )
    use = operand_use(name)
    words: list[tuple[Operand, int | None]] = []
    pred = Predicate()
    parts = [kind for kind, used in (("a", use.a), ("b", use.b), ("p", use.selector)) if used]
    for position, part in enumerate(parts):
        if position:
            line.expect(",")
        if part == "p":
            pred = _predicate(line)
        else:
            words.append(_operand(line, slot))
    dst, dst_index = DstKind.NONE, 0
    if line.accept("->"):
        index = line.numbered("r", "p")
        if index is None:
            raise line.unexpected("a destination: a register such as r1 or a predicate such as p0")
        dst = DstKind.REG if index[0] == "r" else DstKind.PRED
        dst_index = index[1]
    if line.accept("@"):
        if use.selector:
            raise line.error(f"'{name}' selects by its predicate and cannot have a guard")
        pred = _predicate(line)
    immediates = {imm for _, imm in words if imm is not None}
    if len(immediates) > 1:
        raise line.error("a slot has one immediate; both operands can only read the same")
    operands = iter(operand for operand, _ in words)
    code = SlotCode(
        name=name,
        a=next(operands) if use.a else Operand(),
        b=next(operands) if use.b else Operand(),
        imm=immediates.pop() if immediates else 0,
        dst=dst,
        dst_index=dst_index,
        pred=pred,
    )
    try:
        verify_slot(config, f"slot {slot.name}", slot, code)
    except ProgramError as error:
        raise line.error(str(error)) from None
    return code


def _operand(line: ListingLine, slot: Slot) -> tuple[Operand, int | None]:
    forwards = {source.name: code for code, source in FORWARDS[slot].items()}
    if line.accept("#"):
        return Operand(Source.IMM), line.immediate()
    register = line.numbered("r")
    if register is not None:
        return Operand(Source.REG, register[1]), None
    for name, source in {**PLAIN_OPERANDS, **forwards}.items():
        if line.accept(name):
            return Operand(source), None
    word = line.peek() or ""
    if word in _SLOT_NAMES:
        takes = ", ".join(forwards) or "no other slot's result"
        raise line.error(f"slot {slot.name} cannot read {word}'s result; it can read {takes}")
    names = ", ".join(["r0", "#1", *PLAIN_OPERANDS, *forwards])
    raise line.unexpected(f"an operand (such as {names})", {**PLAIN_OPERANDS, **forwards})


def _predicate(line: ListingLine) -> Predicate:
    negate = line.accept("!")
    if line.accept("pt"):
        return Predicate(None, negate)
    found = line.numbered("p")
    if found is None:
        raise line.unexpected("a predicate such as p0, !p0 or pt")
    return Predicate(found[1], negate)


def _branch(line: ListingLine) -> tuple[Branch, _Target, _Target]:
    cond: Branch | None = None
    negate = line.accept("!")
    if line.accept("flag"):
        if line.accept("A1"):
            cond = Branch(cond=CondSource.FLAG_A1, negate=negate)
        elif line.accept("A2"):
            cond = Branch(cond=CondSource.FLAG_A2, negate=negate)
        else:
            raise line.unexpected("A1 or A2, whose comparison decides the branch", ("A1", "A2"))
    elif (pred := line.numbered("p")) is not None:
        cond = Branch(cond=CondSource.PRED, pred=pred[1], negate=negate)
    elif negate:
        raise line.unexpected("a condition: p0, flag A1 or flag A2", ("flag",))
    if cond is None:
        return Branch(), _target(line, trap=True), _Target("0", Status.RUN)
    line.expect("?")
    taken = _target(line, trap=True)
    line.expect(":")
    return cond, taken, _target(line, trap=False)


def _target(line: ListingLine, *, trap: bool) -> _Target:
    if line.accept("exit"):
        return _Target("0", Status.EXIT)
    if line.accept("trap"):
        if not trap:
            raise line.error("only lanes that take the branch can trap; negate the condition")
        return _Target("0", Status.RUN, trap=True)
    status = Status.RUN
    if line.accept("wait"):
        if line.accept("warp"):
            status = Status.WARP
        elif line.accept("cta"):
            status = Status.CTA
        else:
            raise line.unexpected("warp or cta, the threads to wait for", ("warp", "cta"))
    words = "a block, 'wait warp BLOCK', 'wait cta BLOCK' or 'exit'"
    label = line.take(words)
    if not (label.isdigit() or label.isidentifier()):
        raise line.error(f"expected {words}, found '{label}'")
    return _Target(label, status)


def _resolve(line: ListingLine, target: _Target, labels: dict[str, int]) -> int:
    if target.label not in labels:
        known = sum(label.isdigit() for label in labels)
        raise line.error(
            f"there is no block '{target.label}'; the listing has blocks 0 to {known - 1}"
            + did_you_mean(target.label, [x for x in labels if not x.isdigit()])
        )
    return labels[target.label]
