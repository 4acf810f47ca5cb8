"""`qgpu-merge synthesize`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qgpu_merge.commands.common import FOLDER, bar

if TYPE_CHECKING:
    from qgpu_merge.write_checkpoint import Progress


@click.command()
@click.option(
    "-o", "--output", type=FOLDER, required=True, help="Folder to write, with its parents."
)
@click.option("--circuit", type=FOLDER, help="Take the sizes that this circuit needs.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--untied", is_flag=True, help="Give the head its own weights.")
@click.option(
    "--like",
    type=click.Choice(["0.8B", "2B", "4B"]),
    help="Published sizes, and weights that are hard on a merge.",
)
@click.option(
    "--layers", type=click.IntRange(4), help="With --like: another number of layers (4, 8, ...)."
)
@click.option("--force", is_flag=True, help="Replace an existing checkpoint.")
def command(
    output: Path,
    circuit: Path | None,
    seed: int,
    untied: bool,
    like: str | None,
    layers: int | None,
    force: bool,
) -> None:
    """Write a random Qwen3.5 checkpoint: a small one, or one of a published size."""
    from qgpu_isa.new_folder import check_apart

    from qgpu_merge.read_circuit import Circuit
    from qgpu_merge.synthetic_base import SyntheticSizes, write_synthetic_base

    if like is not None:
        from qgpu_merge.published_shapes import write_published_base

        if circuit is not None or untied:
            raise click.UsageError("--like says all sizes; leave --circuit and --untied out")
        if layers is not None and layers % 4:
            raise click.UsageError("--layers must be a multiple of 4")
        with ExitStack() as stack:

            def start(size: int) -> Progress:
                return bar(stack, size, "writing")

            write_published_base(output, like, layers=layers, seed=seed, force=force, start=start)
        click.echo(output)
        return
    if layers is not None:
        raise click.UsageError("--layers goes with --like")
    sizes = SyntheticSizes()
    if circuit is not None:
        check_apart(output, [circuit])
        sizes = SyntheticSizes.for_circuit(Circuit(circuit))
    write_synthetic_base(output, sizes, seed=seed, tied=not untied, force=force)
    click.echo(output)
