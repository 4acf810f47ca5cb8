"""Program images as JSON: exact, for tools; listings are for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from qgpu_isa.errors import ProgramError, QgpuError
from qgpu_isa.instruction import Slot
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.program import (
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

FORMAT = "qgpu-program/1"

T = TypeVar("T")


def image_to_dict(image: ProgramImage) -> dict[str, Any]:
    """The image as plain dicts, lists, strings and numbers; `dict_to_image` gives it back."""
    return {
        "format": FORMAT,
        "name": image.name,
        "machine": asdict(image.config),
        "blocks": [
            {
                "slots": {slot.name: _slot_to_dict(code) for slot, code in block.slots.items()},
                "branch": _branch_to_dict(block.branch),
                "source": list(block.source),
            }
            for block in image.blocks
        ],
    }


def dict_to_image(data: Any) -> ProgramImage:
    """The image that a dict from `image_to_dict` describes, verified.

    Raises:
        ProgramError: naming the entry that is missing or wrong.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ProgramError(f"not a program image: expected an object with format '{FORMAT}'")
    machine = _get(data, "machine", dict, "image")
    try:
        config = MachineConfig(**machine)
    except TypeError as error:
        raise ProgramError(f"machine: {error}") from None
    blocks = []
    for index, entry in enumerate(_get(data, "blocks", list, "image")):
        where = f"blocks[{index}]"
        slots = {}
        for name, code in _get(entry, "slots", dict, where).items():
            slot = _member(Slot, name, f"{where}.slots")
            slots[slot] = _dict_to_slot(code, f"{where}.slots.{name}")
        source = tuple(str(line) for line in entry.get("source", []))
        branch = _dict_to_branch(_get(entry, "branch", dict, where), f"{where}.branch")
        blocks.append(Block(slots, branch, source))
    image = ProgramImage(config, tuple(blocks), _get(data, "name", str, "image"))
    image.verify()
    return image


def image_to_json(image: ProgramImage) -> str:
    """`image_to_dict` as JSON text, one block a line."""
    data = image_to_dict(image)
    blocks = ",\n  ".join(json.dumps(block) for block in data.pop("blocks"))
    return f'{json.dumps(data)[:-1]}, "blocks": [\n  {blocks}\n]}}\n'


def json_to_image(text: str, filename: str = "<json>") -> ProgramImage:
    """The image in JSON text.

    Raises:
        ProgramError: the text is not JSON or not an image; begins with the file's name.
    """
    try:
        return dict_to_image(json.loads(text))
    except json.JSONDecodeError as error:
        raise ProgramError(f"{filename}:{error.lineno}: error: {error.msg}") from None
    except QgpuError as error:
        raise ProgramError(f"{filename}: error: {error}") from None


def _slot_to_dict(code: SlotCode) -> dict[str, Any]:
    return {
        "op": code.name,
        "a": [code.a.source.name, code.a.register],
        "b": [code.b.source.name, code.b.register],
        "imm": code.imm,
        "dst": [code.dst.name, code.dst_index],
        "pred": [code.pred.index, code.pred.negate],
    }


def _dict_to_slot(data: Any, where: str) -> SlotCode:
    a, b, dst, pred = (_pair(data, key, where) for key in ("a", "b", "dst", "pred"))
    index, negate = pred
    if index is not None:
        index = _typed(index, int, f"{where}.pred[0]")
    return SlotCode(
        name=_get(data, "op", str, where),
        a=_operand(a, f"{where}.a"),
        b=_operand(b, f"{where}.b"),
        imm=_get(data, "imm", int, where),
        dst=_member(DstKind, dst[0], f"{where}.dst"),
        dst_index=_typed(dst[1], int, f"{where}.dst[1]"),
        pred=Predicate(index, _typed(negate, bool, f"{where}.pred[1]")),
    )


def _operand(pair: tuple[Any, Any], where: str) -> Operand:
    return Operand(_member(Source, pair[0], where), _typed(pair[1], int, f"{where}[1]"))


def _branch_to_dict(branch: Branch) -> dict[str, Any]:
    return {
        "cond": branch.cond.name,
        "pred": branch.pred,
        "negate": branch.negate,
        "taken": [branch.taken_status.name, branch.taken],
        "next": [branch.next_status.name, branch.next],
        "trap": branch.trap,
    }


def _dict_to_branch(data: Any, where: str) -> Branch:
    taken, next_ = (_pair(data, key, where) for key in ("taken", "next"))
    return Branch(
        cond=_member(CondSource, data.get("cond"), f"{where}.cond"),
        pred=_get(data, "pred", int, where),
        negate=_get(data, "negate", bool, where),
        taken=_typed(taken[1], int, f"{where}.taken[1]"),
        taken_status=_member(Status, taken[0], f"{where}.taken"),
        next=_typed(next_[1], int, f"{where}.next[1]"),
        next_status=_member(Status, next_[0], f"{where}.next"),
        trap=_get(data, "trap", bool, where),
    )


def _get(data: Any, key: str, kind: type[T], where: str) -> T:
    if not isinstance(data, dict) or key not in data:
        raise ProgramError(f"{where} lacks '{key}'")
    return _typed(data[key], kind, f"{where}.{key}")


def _typed(value: Any, kind: type[T], where: str) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ProgramError(f"{where} is {value!r}; expected {kind.__name__}")
    return value


def _pair(data: Any, key: str, where: str) -> tuple[Any, Any]:
    pair = _get(data, key, list, where)
    if len(pair) != 2:
        raise ProgramError(f"{where}.{key} has {len(pair)} items; expected 2")
    return pair[0], pair[1]


def _member(enum: Callable[..., T], name: Any, where: str) -> T:
    members: dict[str, T] = enum.__members__  # type: ignore[attr-defined]
    if not isinstance(name, str) or name not in members:
        raise ProgramError(f"{where}: '{name}' is not one of {', '.join(members)}")
    return members[name]
