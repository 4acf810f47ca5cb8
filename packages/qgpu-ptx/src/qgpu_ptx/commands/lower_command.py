"""`qgpu-ptx lower`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from qgpu_isa import PROFILES
from qgpu_isa.program_text import image_to_text

from qgpu_ptx.commands.files import read_module, write_text
from qgpu_ptx.ir import Function
from qgpu_ptx.launch_spec import load_launch_spec
from qgpu_ptx.lower import PlacedLaunch, lower_launch
from qgpu_ptx.passes import PIPELINE

STAGES = ("ir", *(step.name for step in PIPELINE), "legalize", "spill")


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--spec", "spec_path", type=click.Path(path_type=Path),
    help="Launch specification; default: the source's name with .toml.",
)  # fmt: skip
@click.option("--compiler", help="CUDA compiler for a .cu file.")
@click.option("--profile", default="default", show_default=True, type=click.Choice([*PROFILES]))
@click.option("--dump", type=click.Choice(STAGES), help="Print the IR after a stage instead.")
@click.option(
    "--without", multiple=True, type=click.Choice([step.name for step in PIPELINE]),
    help="Leave out a pass (may be repeated).",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print sizes, memory and listing as JSON.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write.")
def command(
    source: Path,
    spec_path: Path | None,
    compiler: str | None,
    profile: str,
    dump: str | None,
    without: tuple[str, ...],
    as_json: bool,
    output: Path | None,
) -> None:
    """Lower a kernel to machine blocks for the launch that its spec describes."""
    spec = load_launch_spec(spec_path or source.with_suffix(".toml"))
    module = read_module(source, compiler)
    stages: dict[str, str] = {}

    def watch(name: str, function: Function) -> None:
        stages[name] = str(function)

    placed = lower_launch(module, spec, PROFILES[profile], without=without, watch=watch)
    if dump is not None:
        if dump not in stages:
            raise click.UsageError(f"pass {dump} was left out")
        text = stages[dump]
    elif as_json:
        text = json.dumps(_plain(placed), indent=1) + "\n"
    else:
        text = image_to_text(placed.kernel.image)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


def _plain(placed: PlacedLaunch) -> dict[str, object]:
    kernel = placed.kernel
    return {
        "kernel": kernel.image.name,
        "machine": kernel.image.config.name,
        "threads": kernel.shape.threads,
        "ctas": kernel.shape.ctas,
        "blocks": len(kernel.image.blocks),
        "registers": kernel.registers,
        "predicates": kernel.predicates,
        "global_words": kernel.end // 4,
        "shared_words": kernel.shared_words,
        "arrays": {array.name: array.address for array in placed.layout.arrays},
        "sources": [list(block.source) for block in kernel.image.blocks],
        "listing": image_to_text(kernel.image),
    }
