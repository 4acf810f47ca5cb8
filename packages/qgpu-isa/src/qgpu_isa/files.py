"""Files that the command line reads and writes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from qgpu_isa.errors import QgpuError
from qgpu_isa.machine_config import WORD_BITS, WORD_MASK, MachineConfig, profile
from qgpu_isa.program import ProgramImage
from qgpu_isa.program_json import json_to_image
from qgpu_isa.program_text import text_to_image


class InputError(QgpuError):
    """A file or argument that cannot be used."""


def write_text(path: Path, text: str) -> None:
    """Writes a file beside `path` and renames it: `path` is never half written.

    A link stays a link, and what is no regular file (a pipe, a device) is written to in place.

    Raises:
        InputError: the folder cannot be written.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        _write_in_place(path, text)
        return
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        follow_umask(Path(name))
        os.replace(name, target)
    except BaseException as error:
        # What is no text, and Ctrl-C, leave nothing behind either.
        os.unlink(name)
        if isinstance(error, OSError):
            raise InputError(f"cannot write {path}: {error.strerror}") from None
        raise


def _write_in_place(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def follow_umask(path: Path) -> None:
    """Gives a file, or all files in a folder, the mode of a new one.

    Temporary files, and those of some libraries, are for their owner alone.
    """
    umask = os.umask(0)
    os.umask(umask)
    files = (p for p in path.rglob("*") if p.is_file()) if path.is_dir() else (path,)
    for file in files:
        file.chmod(0o666 & ~umask)


def read_text(path: Path) -> str:
    """The text of a file; `-` is standard input.

    Raises:
        InputError: it cannot be read or is not UTF-8 text.
    """
    try:
        if path == Path("-"):
            return sys.stdin.read()
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"cannot read {path}: not UTF-8 text") from None


def read_image(path: Path, config: MachineConfig | None = None) -> ProgramImage:
    """The image in a listing or JSON file, told apart by the first character.

    Args:
        path: the file.
        config: the machine of a listing without a `.machine` line.

    Raises:
        QgpuError: the file cannot be read or holds no image.
    """
    text = read_text(path)
    if text.lstrip().startswith("{"):
        return json_to_image(text, str(path))
    return text_to_image(text, str(path), config)


def read_image_for(path: Path, machine: str | None) -> ProgramImage:
    """The image in a file, for the machine of that name if one is given.

    Raises:
        QgpuError: as `read_image`, there is no such machine, or the file is for another one.
    """
    if machine is None:
        return read_image(path)
    config = profile(machine)
    image = read_image(path, config)
    if image.config != config:
        raise InputError(f"{path} is for machine '{image.config.name}', not for '{machine}'")
    return image


def read_memory(config: MachineConfig, specs: Iterable[str]) -> dict[int, int]:
    """Memory contents (word number -> word) from arguments.

    Args:
        config: the machine.
        specs: each `ADDRESS=WORD,WORD,...` with a byte address, or the name of a JSON file that
            holds an object of such addresses and lists. Words may be signed. Later ones win.

    Raises:
        InputError: naming the argument and what is wrong.
    """
    memory: dict[int, int] = {}
    for spec in specs:
        address, equals, values = spec.partition("=")
        if equals:
            _place(config, memory, spec, address, values.split(","))
            continue
        try:
            data = json.loads(read_text(Path(spec)))
        except json.JSONDecodeError as error:
            raise InputError(f"{spec}:{error.lineno}: error: {error.msg}") from None
        if not isinstance(data, dict):
            raise InputError(f'{spec}: expected an object such as {{"0x40": [1, 2]}}')
        for key, words in data.items():
            _place(config, memory, spec, key, words if isinstance(words, list) else [words])
    return memory


def _place(
    config: MachineConfig, memory: dict[int, int], spec: str, address: str, words: Sequence[object]
) -> None:
    first = _integer(spec, address)
    if first % 4 or first < 0:
        raise InputError(f"memory '{spec}': address {address} is not a multiple of 4")
    for offset, text in enumerate(words):
        word = _integer(spec, text)
        if not -(1 << (WORD_BITS - 1)) <= word <= WORD_MASK:
            raise InputError(f"memory '{spec}': {word} does not fit {WORD_BITS} bits")
        number = first // 4 + offset
        if number >= config.memory_words:
            raise InputError(
                f"memory '{spec}': address {4 * number:#x} is behind the last word of machine "
                f"'{config.name}' at {4 * (config.memory_words - 1):#x}"
            )
        memory[number] = word & WORD_MASK


def _integer(spec: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(str(value), 0)
    except ValueError:
        raise InputError(
            f"memory '{spec}': '{value}' is not a number; expected ADDRESS=WORD,... or a JSON file"
        ) from None
