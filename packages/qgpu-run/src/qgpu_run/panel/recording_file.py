"""Recordings as files: a line of JSON that says what ran, then one line an event."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from qgpu_isa.errors import QgpuError
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.program_json import dict_to_image, image_to_dict

from qgpu_run.errors import RequestError
from qgpu_run.launch_request import OutputArray
from qgpu_run.panel.events import Decoded, Ended, Event, LaunchInfo, MemoryRead, Reset, Setup
from qgpu_run.panel.recording import Recording

FORMAT = 1


class RecordingWriter:
    """Writes the events of one launch to a file as they come."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("w", encoding="utf-8")
        self._begun = False

    def begin(self, info: LaunchInfo) -> None:
        """Writes what runs; of several launches only the first is kept."""
        if not self._begun:
            self._line(info_to_dict(info))
        self._begun = True

    def write(self, event: Event) -> None:
        """Writes an event."""
        line = event_to_dict(event)
        if line and not self._file.closed:
            self._line(line)
            if isinstance(event, Ended):
                self.close()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _line(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value, separators=(",", ":")) + "\n")


def info_to_dict(info: LaunchInfo) -> dict[str, Any]:
    """The first line of a file."""
    return {
        "qgpu_recording": FORMAT,
        "machine": asdict(info.config),
        "kernel": info.kernel,
        "engine": info.engine,
        "threads": info.threads,
        "ctas": info.ctas,
        "arrays": [asdict(array) for array in info.arrays],
        "program": image_to_dict(info.image),
    }


def dict_to_info(value: dict[str, Any]) -> LaunchInfo:
    """What `info_to_dict` wrote."""
    return LaunchInfo(
        MachineConfig(**value["machine"]),
        dict_to_image(value["program"]),
        int(value["threads"]),
        int(value["ctas"]),
        str(value["kernel"]),
        str(value["engine"]),
        tuple(OutputArray(**array) for array in value["arrays"]),
    )


def event_to_dict(event: Event) -> dict[str, Any]:
    """An event's line; empty for one that has none."""
    match event:
        case Reset():
            return {"reset": True}
        case Setup(tokens):
            return {"setup": list(tokens)}
        case Decoded(token, margin, seconds):
            kept = round(margin, 3) if math.isfinite(margin) else None
            return {"token": [token, kept, round(seconds, 6)]}
        case MemoryRead(words):
            return {"memory": {str(address): word for address, word in words.items()}}
        case Ended(outcome, problem):
            return {"ended": dict(outcome), "problem": problem}
    return {}


def dict_to_event(value: dict[str, Any]) -> Event:
    """What `event_to_dict` wrote."""
    match value:
        case {"token": [token, margin, seconds]}:
            return Decoded(int(token), float("inf") if margin is None else margin, float(seconds))
        case {"memory": words}:
            return MemoryRead({int(address): int(word) for address, word in words.items()})
        case {"setup": tokens}:
            return Setup(tuple(map(int, tokens)))
        case {"reset": _}:
            return Reset()
        case {"ended": outcome, "problem": problem}:
            return Ended(outcome, problem)
    raise ValueError("an event of no kind that there is")


def read_recording(path: Path) -> Recording:
    """The recording in a file. One that ends early is that far.

    Raises:
        RequestError: it is no recording; names file and line.
    """
    number = 1
    try:
        with path.open(encoding="utf-8") as file:
            lines = _objects(file)
            first = next(lines, {})
            if first.get("qgpu_recording") != FORMAT:
                raise RequestError(f"{path} is no recording of `qgpu-run watch --record`")
            recording = Recording(dict_to_info(first))
            for number, line in enumerate(lines, start=2):  # noqa: B007
                recording.append(dict_to_event(line))
    except (QgpuError, ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, RequestError):
            raise
        raise RequestError(f"{path}, near line {number}: not a recording: {error}") from None
    if not recording.ended:
        recording.append(Ended(problem="the recording ends here"))
    return recording


def _objects(file: TextIO) -> Iterator[dict[str, Any]]:
    for line in file:
        yield json.loads(line)
