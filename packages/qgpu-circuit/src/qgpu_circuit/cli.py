"""Command line: from the machine to weights, and what stands on the way."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
from qgpu_isa import PROFILES, profile
from qgpu_isa.errors import QgpuError


def default_folder(name: str) -> Path:
    """Where a profile's circuit is kept: `$QGPU_CACHE`, else `~/.cache/qgpu`."""
    root = os.environ.get("QGPU_CACHE") or Path.home() / ".cache" / "qgpu"
    return Path(root) / "circuits" / name


@click.group()
def main() -> None:
    """The qgpu machine compiled to Qwen3.5 transformer layers."""


@main.command()
@click.option("--profile", "name", type=click.Choice(list(PROFILES)), default="default")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder to write.")
@click.option("--quiet", is_flag=True, help="No progress.")
def emit(name: str, output: Path | None, quiet: bool) -> None:
    """Writes circuit.safetensors and circuit.json."""
    from qgpu_circuit.circuit_weights import save_circuit
    from qgpu_circuit.machine_to_netlist import machine_to_netlist
    from qgpu_circuit.model_shape import shape_for
    from qgpu_circuit.netlist_to_layers import netlist_to_layers

    config = profile(name)
    shape = shape_for(config)
    try:
        machine = machine_to_netlist(config, shape)
        plan = netlist_to_layers(machine.netlist, shape)
        steps = 14 * len(plan.layers) + 3
        with click.progressbar(
            length=steps, label=f"emitting {name}", file=sys.stderr, hidden=quiet
        ) as bar:
            folder = output or default_folder(name)
            manifest = save_circuit(machine, plan, folder, lambda _: bar.update(1))
    except QgpuError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{folder}: {len(plan.layers)} layers, digest {manifest['digest'][:16]}")


if __name__ == "__main__":
    main()
