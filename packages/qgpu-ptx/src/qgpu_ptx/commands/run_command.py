"""`qgpu-ptx run`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qgpu_ptx.commands.files import read_module
from qgpu_ptx.launch_spec import load_launch_spec
from qgpu_ptx.ptx_interpreter import DEFAULT_MAX_STEPS
from qgpu_ptx.run_launch_spec import SpecResult, run_launch_spec


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--spec", "spec_path", type=click.Path(path_type=Path),
    help="Launch specification; default: the source's name with .toml.",
)  # fmt: skip
@click.option("--compiler", help="CUDA compiler for a .cu file.")
@click.option("--max-steps", default=DEFAULT_MAX_STEPS, show_default=True, type=int)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    source: Path,
    spec_path: Path | None,
    compiler: str | None,
    max_steps: int,
    as_json: bool,
) -> None:
    """Run a kernel on the PTX interpreter and compare with the spec's [expected]."""
    spec = load_launch_spec(spec_path or source.with_suffix(".toml"))
    module = read_module(source, compiler)
    result = run_launch_spec(module, spec, max_steps)
    if as_json:
        click.echo(json.dumps(_plain(result)))
    else:
        _print(result, checked=bool(spec.expected))
    if result.mismatches:
        ctx.exit(1)


def _plain(result: SpecResult) -> dict[str, object]:
    return {
        "outputs": result.outputs,
        "mismatches": [vars(mismatch) for mismatch in result.mismatches],
        "steps": result.steps,
    }


def _print(result: SpecResult, *, checked: bool) -> None:
    for name, values in result.outputs.items():
        click.echo(f"{name} = {values}")
    for mismatch in result.mismatches:
        click.echo(
            f"mismatch: {mismatch.array}[{mismatch.index}] is {mismatch.found}, "
            f"expected {mismatch.expected}",
            err=True,
        )
    verdict = "" if not checked else (", MISMATCH" if result.mismatches else ", as expected")
    click.echo(f"{result.steps} warp instructions{verdict}", err=True)
