"""`qgpu-ptx parse`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from qgpu_ptx.diagnostics import CudaLocation, InputFileError
from qgpu_ptx.ptx_ast import Node
from qgpu_ptx.source_to_ast import parse_ptx
from qgpu_ptx.text_files import read_text


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the syntax tree as JSON.")
def command(source: Path, as_json: bool) -> None:
    """Check a PTX file and print it, or its syntax tree."""
    text = read_text(source)
    if not text.strip():
        raise InputFileError(f"{source} is empty: PTX begins with .version")
    module = parse_ptx(text, str(source))
    if as_json:
        click.echo(json.dumps(_plain(module), indent=1))
    else:
        click.echo(str(module), nl=False)


def _plain(value: object) -> Any:
    """Nodes as objects with their class name under "node" and their place under "line"."""
    if isinstance(value, Node):
        fields = {
            field.name: _plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.name != "span"
        }
        place = {"line": value.span.line, "column": value.span.column} if value.span else {}
        return {"node": type(value).__name__, **place, **fields}
    if isinstance(value, CudaLocation):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
