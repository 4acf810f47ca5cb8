"""Recompute what is derived in this folder: expected results, PTX files and the table.

    uv run python kernels/regenerate.py           # rewrite what is stale
    uv run python kernels/regenerate.py --check   # only report; exit status 1 if stale

Derived are the ``[expected]`` part of each TOML file (from ``expected.py``), each PTX file
(from the CUDA file, with NVRTC) and the table in ``README.md``.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import click

KERNELS = Path(__file__).resolve().parent
sys.path.insert(0, str(KERNELS))

from expected import expected_results  # noqa: E402

ARCHITECTURE = "compute_75"
TABLE_BEGIN = "<!-- table: written by regenerate.py -->"
TABLE_END = "<!-- end of table -->"


class CompileError(Exception):
    """NVRTC is missing or refused the source."""


class Nvrtc:
    """The few NVRTC calls needed to turn CUDA C into PTX."""

    def __init__(self) -> None:
        folder = _nvrtc_folder()
        builtins = sorted(folder.glob("libnvrtc-builtins.so.*"))
        if not builtins:
            raise CompileError(f"no libnvrtc-builtins in {folder}")
        # NVRTC looks its built-ins up by name only, so they are loaded first.
        ctypes.CDLL(str(builtins[0]), mode=ctypes.RTLD_GLOBAL)
        self._lib = ctypes.CDLL(str(folder / "libnvrtc.so.13"))

    def ptx(self, source: str, name: str) -> str:
        """Compile `source` and return PTX that names the file just `name`."""
        lib, program = self._lib, ctypes.c_void_p()
        status = lib.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), name.encode(), 0, None, None
        )
        if status != 0:
            raise CompileError(f"{name}: nvrtcCreateProgram returned {status}")
        try:
            flags = [f"--gpu-architecture={ARCHITECTURE}".encode(), b"-lineinfo"]
            array = (ctypes.c_char_p * len(flags))(*flags)
            status = lib.nvrtcCompileProgram(program, len(flags), array)
            if status != 0:
                raise CompileError(f"{name}:\n{self._text(program, 'ProgramLog')}")
            return _normalise(self._text(program, "PTX"), name)
        finally:
            lib.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> str:
        size = ctypes.c_size_t()
        getattr(self._lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self._lib, f"nvrtcGet{what}")(program, buffer)
        return buffer.value.decode()


def _nvrtc_folder() -> Path:
    spec = find_spec("nvidia.cu13")
    for base in spec.submodule_search_locations or [] if spec else []:
        folder = Path(base) / "lib"
        if (folder / "libnvrtc.so.13").exists():
            return folder
    raise CompileError("NVRTC 13 is not installed (package nvidia-cuda-nvrtc)")


def _normalise(ptx: str, name: str) -> str:
    """Shorten the path in the .file entry and drop trailing blanks."""
    ptx = re.sub(r'(\.file\s+\d+\s+)"[^"]*"', rf'\1"{name}"', ptx)
    return "\n".join(line.rstrip() for line in ptx.splitlines()).strip("\n") + "\n"


def format_array(values: Sequence[int]) -> str:
    """A TOML array on one line, or on several when it is long."""
    one_line = "[" + ", ".join(str(v) for v in values) + "]"
    if len(one_line) < 80:
        return one_line
    lines, line = [], "   "
    for value in values:
        item = f" {value},"
        if len(line) + len(item) > 92:
            lines.append(line)
            line = "   "
        line += item
    return "[\n" + "\n".join([*lines, line]) + "\n]"


def spec_text(text: str) -> str:
    """The text of a launch spec with its [expected] part, always the last one, renewed."""
    head = re.split(r"^\[expected\]\s*$", text, maxsplit=1, flags=re.MULTILINE)[0].rstrip("\n")
    lines = [head, "", "[expected]"]
    for name, values in expected_results(tomllib.loads(head)).items():
        lines.append(f"{name} = {format_array(values.tolist())}")
    return "\n".join(lines) + "\n"


def readme_text(text: str, specs: dict[Path, dict[str, Any]]) -> str:
    """README.md with its table renewed."""
    begin = text.index(TABLE_BEGIN) + len(TABLE_BEGIN)
    end = text.index(TABLE_END)
    rows = ["| Group | Kernel | What it shows | Blocks x threads |", "| --- | --- | --- | --- |"]
    for path, spec in sorted(specs.items()):
        group, name = path.parent.name, path.stem
        shape = f"{prod(spec['grid'])} x {prod(spec['block'])}"
        link = f"[{name}]({group}/{name}.cu)"
        rows.append(f"| {group} | {link} | {spec['summary']} | {shape} |")
    rows.append(f"\n{len(specs)} kernels.")
    return text[:begin] + "\n" + "\n".join(rows) + "\n" + text[end:]


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new text, never a part."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if something is stale.")
@click.option("--no-ptx", is_flag=True, help="Leave the PTX files alone (NVRTC is not needed).")
def main(check: bool, no_ptx: bool) -> None:
    """Renew expected results, PTX files and the table of kernels."""
    wanted: dict[Path, str] = {}
    specs: dict[Path, dict[str, Any]] = {}
    try:
        nvrtc = None if no_ptx else Nvrtc()
        for source in sorted(KERNELS.glob("*/*.cu")):
            toml = source.with_suffix(".toml")
            specs[source] = tomllib.loads(toml.read_text(encoding="utf-8"))
            wanted[toml] = spec_text(toml.read_text(encoding="utf-8"))
            if nvrtc:
                text = source.read_text(encoding="utf-8")
                wanted[source.with_suffix(".ptx")] = nvrtc.ptx(text, source.name)
    except CompileError as error:
        raise click.ClickException(str(error)) from error
    readme = KERNELS / "README.md"
    wanted[readme] = readme_text(readme.read_text(encoding="utf-8"), specs)
    stale = [
        path
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        click.echo(f"{'stale' if check else 'wrote'}: {path.relative_to(KERNELS)}")
        if not check:
            write_atomically(path, wanted[path])
    click.echo(f"{len(specs)} kernels, {len(stale)} files {'stale' if check else 'written'}")
    if check and stale:
        sys.exit(1)


if __name__ == "__main__":
    main()
