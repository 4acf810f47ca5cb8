"""Memory, global and shared, a few words a line."""

from __future__ import annotations

import re

from qgpu_isa.words import signed

from qgpu_run.launch_request import TYPE_BYTES, OutputArray
from qgpu_run.panel.events import LaunchInfo
from qgpu_run.panel.lines.line import Line, Role
from qgpu_run.panel.machine_view import MachineView

ADDRESS = 7
NAME = 8
NEGATIVE = 1 << 31


def word_width(view: MachineView, base: int) -> int:
    """Columns of the longest word there is, with the blank in front."""
    if base == 16:
        return 9
    most = max((word for word in view.memory if word < NEGATIVE), default=0)
    least = min((word for word in view.memory if word >= NEGATIVE), default=0)
    return max(5, len(str(most)), len(str(signed(least)))) + 1


def words_per_line(view: MachineView, base: int, columns: int) -> int:
    """Words that fit into a line: a power of two."""
    count, width = 1, word_width(view, base)
    while count < 16 and ADDRESS + NAME + 2 * count * width <= columns:
        count *= 2
    return count


def memory_line(view: MachineView, info: LaunchInfo, first: int, count: int, base: int) -> Line:
    """The line of the words from word address `first` on."""
    config = view.config
    shared = first >= config.global_words
    place = 4 * (first - config.global_words if shared else first)
    name, width = _name(info.arrays, first, count), word_width(view, base)
    line: Line = [
        (f"{'s' if shared else ' '}{place:05x} ", "dim"),
        (f"{name[:NAME]:<{NAME}}", "label" if name else "dim"),
    ]
    for address in range(first, min(first + count, config.memory_words)):
        word = view.memory[address]
        text = f"{word:08x}" if base == 16 else str(signed(word))
        line.append((f"{text:>{width}}", _role(view, address, word)))
    return line


def _role(view: MachineView, address: int, word: int) -> Role:
    changed = view.memory_changed_at.get(address)
    if changed is not None:
        return "new" if changed >= view.ran_at else "changed"
    return "" if word else "dim"


def _name(arrays: tuple[OutputArray, ...], first: int, count: int) -> str:
    for address in range(first, first + count):
        for array in arrays:
            text = array.elements_of_word(address)
            if text:
                return text.partition("..")[0].rstrip("]") + "]"
    return ""


def find_address(text: str, info: LaunchInfo) -> int | None:
    """The word address that a text means: `a`, `a[3]`, or a byte address; `s` before it: shared.

    None if it means none.
    """
    text = text.strip()
    match = re.fullmatch(r"(\w+)\[([0-9]{1,9})\]", text)
    name, index = (match[1], int(match[2])) if match else (text, 0)
    for array in info.arrays:
        if array.name == name:
            return (array.address + TYPE_BYTES[array.type] * index) // 4
    shared = text.startswith("s")
    try:
        byte = int(text.removeprefix("s") or "0", 0)
    except ValueError:
        return None
    word = byte // 4 + (info.config.global_words if shared else 0)
    return word if 0 <= word < info.config.memory_words else None
