"""`qgpu-ptx lower`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from qgpu_isa import PROFILES
from qgpu_isa.program_json import image_to_json
from qgpu_isa.program_text import image_to_text

from qgpu_ptx.commands.sources import launch_options
from qgpu_ptx.ir import Function
from qgpu_ptx.kernel_source import read_module
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_ptx.lower import PlacedLaunch, lower_launch
from qgpu_ptx.passes import PIPELINE, SWITCHES
from qgpu_ptx.text_files import write_text

STAGES = ("ir", *(step.name for step in PIPELINE), "legalize", "spill")


EPILOG = "\b\nPasses that --without leaves out:\n" + "\n".join(
    f"  {name:17}{what}" for name, what in SWITCHES.items()
)


@click.command(epilog=EPILOG)
@launch_options
@click.option("--profile", default="default", show_default=True, type=click.Choice([*PROFILES]))
@click.option("--dump", type=click.Choice(STAGES), help="Print the IR after a stage instead.")
@click.option(
    "--without", multiple=True, metavar="PASS", type=click.Choice([*SWITCHES]),
    help="Leave out a pass (may be repeated), for debugging: see below.",
)  # fmt: skip
@click.option(
    "--json", "as_json", is_flag=True, help="Print sizes, memory and listing as JSON instead."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path),
    help="File to write: the program image if its name ends in .json, else the listing.",
)  # fmt: skip
def command(
    source: Path,
    spec: Path | None,
    kernel: str | None,
    grid: str | None,
    block: str | None,
    arguments: tuple[str, ...],
    compiler: str | None,
    profile: str,
    dump: str | None,
    without: tuple[str, ...],
    as_json: bool,
    output: Path | None,
) -> None:
    """Lower a .cu or .ptx kernel to machine blocks for one launch.

    A VALUE is a number, a list (1,2,3), zeros(N) or a .npy file; a TYPE is s32, u8* and the like.
    With a launch spec, arguments replace the spec's; without one they are the kernel's, in order.
    Both the image and the listing hold the program alone: `qgpu-run launch` takes either, with the
    contents of memory by word address.
    """
    module = read_module(source, compiler)
    launch = LaunchOptions(spec, kernel, grid, block, arguments).launch_spec(source, module)
    stages: dict[str, str] = {}

    def watch(name: str, function: Function) -> None:
        stages[name] = str(function)

    placed = lower_launch(module, launch, PROFILES[profile], without=without, watch=watch)
    if dump is not None:
        if dump not in stages:
            raise click.UsageError(f"pass {dump} was left out")
        text = stages[dump]
    elif as_json:
        text = json.dumps(_plain(placed), indent=1) + "\n"
    elif output is not None and output.suffix == ".json":
        text = image_to_json(placed.kernel.image)
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
