"""Command line: from the machine to weights, and what stands on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import click
from click.core import ParameterSource
from qgpu_isa import PROFILES, profile
from qgpu_isa.errors import QgpuError, os_error_text
from qgpu_isa.files import read_text, write_text
from qgpu_isa.machine_config import FIT
from qgpu_isa.termination import clean_termination

P = ParamSpec("P")
R = TypeVar("R")

profile_option = click.option(
    "--profile",
    "name",
    type=click.Choice(list(PROFILES)),
    default="default",
    show_default=True,
    help="Machine to compile.",
)
fit_option = click.option(
    "--profile",
    "name",
    type=click.Choice([*PROFILES, FIT]),
    default="default",
    show_default=True,
    help=f"Machine to compile; '{FIT}' is the largest that the base has room for.",
)
base_option = click.option(
    "--base",
    type=click.Path(path_type=Path),
    help="Checkpoint folder or config.json of the model it will stand in front of.",
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
            with clean_termination():
                return command(*args, **kwargs)
        except QgpuError as error:
            raise _Failure(str(error), error.exit_code) from None
        except OSError as error:
            raise _Failure(os_error_text(error), 2) from None

    return run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="qgpu-circuit")
def main() -> None:
    """The qgpu machine compiled to Qwen3.5 transformer layers."""


@main.command()
@fit_option
@base_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder to write, made with its parents; default: in the cache.",
)
@click.option(
    "--pad/--no-pad", default=True, help="Let a base that is too small grow, or refuse it."
)
@click.option("--force", is_flag=True, help="Replace an existing circuit.")
@click.option("--quiet", is_flag=True, help="No progress.")
@json_option
@readable_errors
def emit(
    name: str,
    base: Path | None,
    output: Path | None,
    pad: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write circuit.safetensors (sparse) and circuit.json.

    Without --base the circuit has the shape that the profile needs (`small` the 0.8B's, `default`
    the 2B's, 128 wider); with it the base's, padded where the machine needs more.

    Without -o the circuit is kept in the cache ($QGPU_CACHE or ~/.cache/qgpu), and compiled only
    if it is not there. Circuits of other versions leave the cache when they were not used for a
    day.
    """
    from qgpu_circuit.compile_profile import (
        emit_circuit,
        ensure_circuit,
        read_manifest,
        shape_of,
    )

    name, shape = shape_of(name, base, may_pad=pad)
    if output is None:
        output = ensure_circuit(name, shape, force=force, quiet=quiet)
    else:
        emit_circuit(name, output, shape=shape, force=force, quiet=quiet)
    found = read_manifest(output)
    if as_json:
        facts = {"path": str(output), "shape": found["shape"], "digest": found["digest"]}
        click.echo(json.dumps(facts))
        return
    click.echo(f"{output}: {found['shape']['num_layers']} layers, digest {found['digest'][:16]}")


@main.command()
@fit_option
@base_option
@click.option(
    "--diff",
    "pair",
    nargs=2,
    metavar="A B",
    help="Compare two circuits instead: folders that `emit` wrote, or profiles.",
)
@json_option
@click.pass_context
@readable_errors
def report(
    ctx: click.Context, name: str, base: Path | None, pair: tuple[str, str] | None, as_json: bool
) -> None:
    """Print layers, neurons, heads, dimensions, non-zeros and margins.

    With --diff, what two circuits hold is counted in their weights and put side by side, layer by
    layer. A profile is taken from the cache, compiled if it is missing; ./nano is a folder.
    """
    if pair is not None:
        if base is not None or ctx.get_parameter_source("name") is not ParameterSource.DEFAULT:
            raise click.UsageError("--diff names what it compares; leave --profile and --base out")
        from qgpu_circuit.compare_circuits import circuit_size, difference, difference_lines

        data = difference(*(circuit_size(one) for one in pair))
        click.echo(json.dumps(data) if as_json else "\n".join(difference_lines(data)))
        return
    from qgpu_circuit.compile_profile import compile_profile, shape_of
    from qgpu_circuit.report import build_report

    found = build_report(*compile_profile(*shape_of(name, base)))
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


@main.command("map")
@fit_option
@base_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Draw a picture (SVG) to this file."
)
@json_option
@readable_errors
def show_map(name: str, base: Path | None, output: Path | None, as_json: bool) -> None:
    """Print which part of the machine stands in which layers, or draw it."""
    from qgpu_circuit.compile_profile import compile_profile, shape_of
    from qgpu_circuit.layer_map import layer_map
    from qgpu_circuit.layer_map_to_svg import layer_map_to_svg

    found = layer_map(*compile_profile(*shape_of(name, base)))
    if output is not None:
        write_text(output, layer_map_to_svg(found))
    if as_json:
        click.echo(json.dumps(found.as_dict()))
    elif output is None:
        for line in found.lines():
            click.echo(line)


@main.command("graph")
@profile_option
@click.option("--match", default="", help="Only ops whose name contains this.")
@readable_errors
def graph(name: str, match: str) -> None:
    """List the netlist: every op, the layer it stands in, what it reads and writes."""
    from qgpu_circuit.compile_profile import compile_profile
    from qgpu_circuit.netlist_text import netlist_lines

    for line in netlist_lines(*compile_profile(name), match):
        click.echo(line)


@main.command("eval")
@click.argument("trace", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--profile",
    "name",
    type=click.Choice(list(PROFILES)),
    help="Take the profile's circuit from the cache, compiled if missing; default: the trace's.",
)
@click.option("--circuit", "folder", type=click.Path(path_type=Path), help="Folder of a circuit.")
@click.option("--net", "nets", multiple=True, help="Print nets whose name contains this.")
@json_option
@readable_errors
def evaluate(
    trace: Path, name: str | None, folder: Path | None, nets: tuple[str, ...], as_json: bool
) -> None:
    """Run emitted layers on a token trace.

    TRACE is what `qgpu-isa trace FILE --ids` prints, - for standard input: one token id a line,
    from 0, the setup included. For every token the circuit's next token and the margin of its
    logit are printed, next to those of the netlist where they differ. What follows setup tokens
    is fed, not decoded; the answers there mean nothing.
    """
    from qgpu_circuit.compile_profile import ensure_circuit
    from qgpu_circuit.evaluate_trace import evaluate_trace
    from qgpu_circuit.token_trace import read_trace

    if folder is not None and name is not None:
        raise click.UsageError("--circuit already says which machine; leave --profile out")
    tokens = read_trace(read_text(trace))
    if folder is None:
        config = profile(name or tokens.machine or "default")
        tokens.check(config)
        folder = ensure_circuit(config.name)
    steps = evaluate_trace(folder, tokens, nets)
    if as_json:
        click.echo(json.dumps([step.as_dict() for step in steps]))
        return
    for step in steps:
        click.echo(step.line())


if __name__ == "__main__":
    main()
