"""The stand-in model merged with a machine, in the cache."""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from qgpu_isa.cache import cache_root, entry_key, find_entry, source_key

from qgpu_run.errors import ModelError

DEFAULT_PROFILE = "small"
"""The machine that the stand-in is merged with if none is named: the quickest on text that has
room for all operations of the calculator."""


def stand_in_base() -> Path:
    """The folder of the stand-in's own checkpoint, which comes with the package.

    Raises:
        ModelError: the package was installed without it.
    """
    folder = Path(str(resources.files("qgpu_run.standin").joinpath("model")))
    if not (folder / "model.safetensors").exists():
        raise ModelError(
            "qgpu-run was installed without its stand-in model: name a merged model with --model"
        )
    return folder


def ensure_stand_in(
    profile: str = DEFAULT_PROFILE, say: Callable[[str], None] | None = None
) -> Path:
    """The stand-in merged with a machine, built now if it is not in the cache ($QGPU_CACHE).

    Args:
        profile: the machine.
        say: gets the lines that the build writes; None: they go to standard error.

    Raises:
        ModelError: it cannot be built; what went wrong has been shown.
    """
    base = stand_in_base()
    files = sorted(path for path in base.iterdir() if path.is_file())
    sources = source_key(("qgpu_isa", "qgpu_circuit", "qgpu_merge"))
    key = entry_key(sources.encode() + b"".join(path.read_bytes() for path in files))
    target = cache_root() / "models" / f"stand-in-{profile}-{key}"
    if find_entry(target):
        return target
    command = [sys.executable, "-m", "qgpu_merge.cli", "build", "--base", str(base)]
    command += ["--profile", profile, "--pad", "-o", str(target)]
    # Another process may have been quicker.
    if _run(command, say) and not target.is_dir():
        raise ModelError(f"cannot merge the stand-in with machine '{profile}' (`qgpu-merge build`)")
    return target


def _run(command: list[str], say: Callable[[str], None] | None) -> int:
    """Runs a program, which ends with this one at the latest."""
    errors = None if say is None else subprocess.PIPE
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, text=True
    ) as process:
        atexit.register(process.kill)
        try:
            for line in process.stderr or ():
                assert say is not None
                say(line.rstrip())
            return process.wait()
        finally:
            process.kill()
            atexit.unregister(process.kill)
