"""Command line: from the machine to weights, and what stands on the way."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TextIO, TypeVar

import click
from qgpu_isa import PROFILES, profile
from qgpu_isa.cache import cached_circuit
from qgpu_isa.errors import QgpuError, os_error_text

if TYPE_CHECKING:
    from qgpu_circuit.layers import CircuitPlan
    from qgpu_circuit.signals import Machine

P = ParamSpec("P")
R = TypeVar("R")

TENSORS_PER_LAYER = 14
profile_option = click.option(
    "--profile",
    "name",
    type=click.Choice(list(PROFILES)),
    default="default",
    show_default=True,
    help="Machine to compile.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


class _Failure(click.ClickException):
    """An error about the user's input, with its exit status."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]


def readable_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turns errors about the user's input into one line and their exit status."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except QgpuError as error:
            raise _Failure(str(error), error.exit_code) from None
        except OSError as error:
            raise _Failure(os_error_text(error), 2) from None

    return run


def compile_profile(name: str) -> tuple[Machine, CircuitPlan]:
    """The netlist of a profile and its layers."""
    from qgpu_circuit.machine_to_netlist import machine_to_netlist
    from qgpu_circuit.model_shape import shape_for
    from qgpu_circuit.netlist_to_layers import netlist_to_layers

    config = profile(name)
    shape = shape_for(config)
    machine = machine_to_netlist(config, shape)
    return machine, netlist_to_layers(machine.netlist, shape)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The qgpu machine compiled to Qwen3.5 transformer layers."""


@main.command()
@profile_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder to write; default: in the cache.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
@readable_errors
def emit(name: str, output: Path | None, quiet: bool) -> None:
    """Write circuit.safetensors (sparse) and circuit.json."""
    from qgpu_circuit.circuit_weights import save_circuit

    machine, plan = compile_profile(name)
    folder = output or cached_circuit(name)
    with click.progressbar(
        length=TENSORS_PER_LAYER * len(plan.layers) + 3,
        label=f"emitting {name}",
        file=sys.stderr,
        hidden=quiet,
    ) as bar:
        manifest = save_circuit(machine, plan, folder, lambda _: bar.update(1))
    click.echo(f"{folder}: {len(plan.layers)} layers, digest {manifest['digest'][:16]}")


@main.command()
@profile_option
@json_option
@readable_errors
def report(name: str, as_json: bool) -> None:
    """Print layers, neurons, heads, dimensions, non-zeros and margins."""
    from qgpu_circuit.report import build_report

    found = build_report(*compile_profile(name))
    if as_json:
        click.echo(json.dumps(found.as_dict()))
        return
    for key, value in found.as_dict().items():
        if key not in ("units", "per_layer"):
            click.echo(f"{key:18} {value}")
    click.echo(f"\n{'unit':12}{'neurons':>9}{'heads':>7}{'nets':>7}")
    for unit, cost in found.units.items():
        click.echo(f"{unit:12}{cost.neurons:9}{cost.heads:7}{cost.nets:7}")
    click.echo(f"\n{'layer':6}{'heads':>7}{'neurons':>9}{'clearing':>10}{'dimensions':>12}")
    for i, layer in enumerate(found.per_layer):
        click.echo(
            f"{i:<6}{layer.heads:7}{layer.neurons:9}{layer.clearing:10}{layer.dimensions:12}"
        )


@main.command("graph")
@profile_option
@click.option("--match", default="", help="Only ops whose name contains this.")
@readable_errors
def graph(name: str, match: str) -> None:
    """List the netlist: every op, the layer it stands in, what it reads and writes."""
    from qgpu_circuit.netlist_text import netlist_lines

    for line in netlist_lines(*compile_profile(name), match):
        click.echo(line)


@main.command("eval")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("tokens", type=click.File())
@click.option("--net", "nets", multiple=True, help="Print nets whose name contains this.")
@json_option
@readable_errors
def evaluate(folder: Path, tokens: TextIO, nets: tuple[str, ...], as_json: bool) -> None:
    """Run emitted layers on a token trace.

    TOKENS holds one token id a line (as `qgpu-isa tokens` and `qgpu-isa trace` count them, from 0),
    or one JSON list. For every token the circuit's next token and the margin of its logit are
    printed, next to those of the netlist.
    """
    from qgpu_circuit.evaluate_trace import evaluate_trace

    steps = list(evaluate_trace(folder, tokens.read(), nets))
    if as_json:
        click.echo(json.dumps([step.as_dict() for step in steps]))
        return
    for step in steps:
        click.echo(step.line())


if __name__ == "__main__":
    main()
