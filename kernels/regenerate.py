"""Recompute what is derived in this folder: expected results, PTX files and the table.

    uv run python kernels/regenerate.py           # rewrite what is stale
    uv run python kernels/regenerate.py --check   # only report; exit status 1 if stale

Derived are the ``[expected]`` part of each TOML file (from ``expected.py``), each PTX file
(from the CUDA file, with NVRTC) and the table in ``README.md``.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import click
from qgpu_isa.files import write_text
from qgpu_ptx import cuda_to_ptx
from qgpu_ptx.diagnostics import QgpuPtxError

KERNELS = Path(__file__).resolve().parent
sys.path.insert(0, str(KERNELS))

from expected import expected_results  # noqa: E402

TABLE_BEGIN = "<!-- table: written by regenerate.py -->"
TABLE_END = "<!-- end of table -->"


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


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if something is stale.")
@click.option("--no-ptx", is_flag=True, help="Leave the PTX files alone (NVRTC is not needed).")
def main(check: bool, no_ptx: bool) -> None:
    """Renew expected results, PTX files and the table of kernels."""
    wanted: dict[Path, str] = {}
    specs: dict[Path, dict[str, Any]] = {}
    try:
        for source in sorted(KERNELS.glob("*/*.cu")):
            toml = source.with_suffix(".toml")
            specs[source] = tomllib.loads(toml.read_text(encoding="utf-8"))
            wanted[toml] = spec_text(toml.read_text(encoding="utf-8"))
            if not no_ptx:
                compiled = cuda_to_ptx(source, compiler="nvrtc").text
                wanted[source.with_suffix(".ptx")] = _normalise(compiled, source.name)
    except QgpuPtxError as error:
        raise click.ClickException(error.render()) from error
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
            write_text(path, wanted[path])
    click.echo(f"{len(specs)} kernels, {len(stale)} files {'stale' if check else 'written'}")
    if check and stale:
        sys.exit(1)


if __name__ == "__main__":
    main()
