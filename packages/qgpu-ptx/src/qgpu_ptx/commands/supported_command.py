"""`qgpu-ptx supported`."""

from __future__ import annotations

import json

import click

from qgpu_ptx.ptx_interpreter import supported_instructions


@click.command()
@click.argument("opcodes", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def command(opcodes: tuple[str, ...], as_json: bool) -> None:
    """List the PTX instructions that can be run, with their modifiers."""
    known = supported_instructions()
    for opcode in opcodes:
        if opcode not in known:
            raise click.BadParameter(
                f"'{opcode}' is no opcode that can be run", param_hint="OPCODES"
            )
    specs = [
        spec
        for opcode, shapes in known.items()
        for spec in shapes
        if not opcodes or opcode in opcodes
    ]
    if as_json:
        rows = [
            {
                "instruction": str(spec),
                "operands": spec.operands,
                "summary": spec.summary,
                "reference": spec.reference,
            }
            for spec in specs
        ]
        click.echo(json.dumps(rows, indent=1))
        return
    for spec in specs:
        click.echo(f"{spec}  {spec.operands}")
