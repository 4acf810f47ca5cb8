"""`qgpu-ptx run`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qgpu_ptx.commands.sources import launch_options
from qgpu_ptx.kernel_source import read_module
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_ptx.ptx_interpreter import DEFAULT_MAX_STEPS
from qgpu_ptx.run_launch_spec import SpecResult, run_launch_spec


@click.command()
@launch_options
@click.option("--max-steps", default=DEFAULT_MAX_STEPS, show_default=True, type=int)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    source: Path,
    spec: Path | None,
    kernel: str | None,
    grid: str | None,
    block: str | None,
    arguments: tuple[str, ...],
    compiler: str | None,
    max_steps: int,
    as_json: bool,
) -> None:
    """Run a .cu or .ptx kernel on the PTX interpreter and compare with the spec's [expected].

    A VALUE is a number, a list (1,2,3), zeros(N) or a .npy file; a TYPE is s32, u8* and the like.
    With a launch spec, arguments replace the spec's; without one they are the kernel's, in
    order, and all arrays are printed.
    """
    module = read_module(source, compiler)
    launch = LaunchOptions(spec, kernel, grid, block, arguments).launch_spec(source, module)
    result = run_launch_spec(module, launch, max_steps)
    if as_json:
        click.echo(json.dumps(_plain(result)))
    else:
        _print(result, checked=bool(launch.expected))
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
