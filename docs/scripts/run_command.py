"""Runs one documented command: in a shell, or in a terminal where a key ends it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

KEY_SECONDS = 0.5

UV = """\
#!/bin/sh
# Runs what `uv run` is asked to run, in the environment that the tests run in.
[ "$1" = run ] || exit 2
shift
while [ "$1" = --group ]; do shift 2; done
exec "$@"
"""


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    status: int
    stdout: str
    stderr: str


def environment(folder: Path, cache: Path) -> dict[str, str]:
    """Variables for commands: `uv run` stays in this environment, nothing is downloaded."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "uv").write_text(UV)
    (programs / "uv").chmod(0o755)
    places = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    return os.environ | {
        "PATH": os.pathsep.join(places),
        "QGPU_CACHE": str(cache),
        "HF_HUB_OFFLINE": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "TERM": "xterm-256color",
    }


def run_command(text: str, folder: Path, variables: dict[str, str], seconds: float) -> Outcome:
    """Runs a command in bash, in a folder."""
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", text],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def run_in_terminal(
    text: str, folder: Path, variables: dict[str, str], seconds: float, key: str
) -> Outcome:
    """Runs a command in a terminal of 120x40, and presses a key until it ends."""
    terminal, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(
        ["bash", "-e", "-c", f"exec {text}"],
        cwd=folder,
        env=variables,
        stdin=program,
        stdout=program,
        stderr=program,
        start_new_session=True,
    )
    os.close(program)
    shown = b""
    end = time.monotonic() + seconds
    pressed = time.monotonic()
    try:
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    shown += os.read(terminal, 65536)
                except OSError:  # the last program has closed it
                    break
            elif process.poll() is not None:
                break
            if b"\x1b[?1049h" in shown and time.monotonic() > pressed + KEY_SECONDS:
                pressed = time.monotonic()
                os.write(terminal, key.encode())
        status = process.wait(max(0.1, end - time.monotonic()))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(terminal)
    return Outcome(status, shown.decode(errors="replace"), "")
