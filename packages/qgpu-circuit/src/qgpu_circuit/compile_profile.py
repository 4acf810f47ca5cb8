"""A machine profile compiled: to its layers, and to a circuit folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from qgpu_isa import PROFILES, profile
from qgpu_isa.cache import cached_circuit, find_entry
from qgpu_isa.machine_config import FIT
from qgpu_isa.new_folder import new_folder

from qgpu_circuit.circuit_weights import CIRCUIT_FOLDER, MANIFEST, write_circuit
from qgpu_circuit.layers import CircuitError, CircuitPlan
from qgpu_circuit.machine_to_netlist import machine_to_netlist
from qgpu_circuit.model_shape import ModelShape, read_base_config, shape_for, shape_for_base
from qgpu_circuit.netlist_to_layers import netlist_to_layers
from qgpu_circuit.signals import Machine

TENSORS_PER_LAYER = 14


def shape_of(name: str, base: Path | None, *, may_pad: bool = True) -> tuple[str, ModelShape]:
    """A profile and its shape: its own, or what fits the base whose config is given.

    Args:
        name: a profile, or `FIT` for the largest that the base has room for.
        base: checkpoint folder or config.json.
        may_pad: whether the shape may be larger than the base has room for.

    Raises:
        CircuitError: the config is none of a base that the circuit can stand in front of, or the
            base is too small.
    """
    if base is None:
        name = "default" if name == FIT else name
        return name, shape_for(profile(name))
    sizes = read_base_config(base)
    has = (
        f"a base {sizes['hidden_size']} wide with {sizes['intermediate_size']} neurons and "
        f"{sizes['linear_num_key_heads']} key heads"
    )
    if name != FIT:
        shape = shape_for_base(profile(name), sizes)
        if shape.padded(sizes) and not may_pad:
            smaller = "" if name == next(iter(PROFILES)) else ", or take a smaller --profile"
            raise CircuitError(
                f"machine '{name}' needs layers {shape.hidden_size} wide with "
                f"{shape.intermediate_size} neurons and {shape.heads} key heads, too much for "
                f"{has}: let the base grow with --pad{smaller}"
            )
        return name, shape
    # From the largest on.
    for fitting in reversed(PROFILES):
        shape = shape_for_base(profile(fitting), sizes)
        if not shape.padded(sizes):
            return fitting, shape
    raise CircuitError(
        f"no machine fits {has}: let the base grow with --pad, and name the machine with --profile"
    )


def compile_profile(name: str, shape: ModelShape | None = None) -> tuple[Machine, CircuitPlan]:
    """The netlist of a profile and its layers, in the profile's own shape if none is given."""
    config = profile(name)
    shape = shape or shape_for(config)
    machine = machine_to_netlist(config, shape)
    return machine, netlist_to_layers(machine.netlist, shape)


def emit_circuit(
    name: str,
    folder: Path,
    *,
    shape: ModelShape | None = None,
    force: bool = False,
    shared: bool = False,
    quiet: bool = False,
) -> None:
    """Compiles a profile into a folder; see `new_folder` for `force` and `shared`.

    Raises:
        OutputError: the folder exists or cannot be written.
    """
    with new_folder(folder, CIRCUIT_FOLDER, force=force, shared=shared) as partial:
        machine, plan = compile_profile(name, shape)
        with click.progressbar(
            length=TENSORS_PER_LAYER * len(plan.layers) + 3,
            label=f"emitting {name}",
            file=sys.stderr,
            hidden=quiet,
        ) as bar:
            write_circuit(machine, plan, partial, lambda _: bar.update(1))


def ensure_circuit(
    name: str, shape: ModelShape | None = None, *, force: bool = False, quiet: bool = False
) -> Path:
    """The cached circuit of a profile, compiled now if it is missing or `force` is set.

    Raises:
        OutputError: the cache cannot be written.
    """
    own = shape is None or shape == shape_for(profile(name))
    folder = cached_circuit(name if own or shape is None else f"{name}-{shape.label}")
    if not find_entry(folder) or force:
        emit_circuit(name, folder, shape=shape, force=force, shared=True, quiet=quiet)
    return folder


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a circuit that was just written or found in the cache."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    return manifest
