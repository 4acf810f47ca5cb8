"""A process of its own: how long it takes from its start, and how much memory it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qgpu_run.errors import ModelError

KIB = 1024


@dataclass(frozen=True)
class ChildRun:
    """A process that ended well.

    Attributes:
        started: when it was started, by the clock of `time.time`.
        seconds: until its end.
        peak_bytes: the most memory it held at a time.
        output: the JSON object in the last line that it printed, if there is one.
    """

    started: float
    seconds: float
    peak_bytes: int
    output: dict[str, Any]


def run_child(module: str, arguments: Sequence[str]) -> ChildRun:
    """Runs a module of Python in a process of its own.

    Raises:
        ModelError: it failed; its own message is in the error.
    """
    command = [sys.executable, "-m", module, *arguments]
    started, clock = time.time(), time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    )
    assert process.stdout is not None
    with process.stdout as stdout:
        text = stdout.read()
    # Popen.wait would throw away what the process used.
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - clock
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise ModelError(f"{' '.join(command[1:])} failed: {text.strip()[-2000:]}")
    lines = text.strip().splitlines()
    output = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    # macOS counts bytes, Linux KiB.
    unit = 1 if sys.platform == "darwin" else KIB
    return ChildRun(started, seconds, usage.ru_maxrss * unit, output)
