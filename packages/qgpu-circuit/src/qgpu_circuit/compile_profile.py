"""A machine profile compiled: to its layers, and to a circuit folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from qgpu_isa import profile
from qgpu_isa.cache import cached_circuit, find_entry
from qgpu_isa.new_folder import new_folder

from qgpu_circuit.circuit_weights import CIRCUIT_FOLDER, MANIFEST, write_circuit
from qgpu_circuit.layers import CircuitPlan
from qgpu_circuit.machine_to_netlist import machine_to_netlist
from qgpu_circuit.model_shape import shape_for
from qgpu_circuit.netlist_to_layers import netlist_to_layers
from qgpu_circuit.signals import Machine

TENSORS_PER_LAYER = 14


def compile_profile(name: str) -> tuple[Machine, CircuitPlan]:
    """The netlist of a profile and its layers."""
    config = profile(name)
    shape = shape_for(config)
    machine = machine_to_netlist(config, shape)
    return machine, netlist_to_layers(machine.netlist, shape)


def emit_circuit(
    name: str, folder: Path, *, force: bool = False, shared: bool = False, quiet: bool = False
) -> None:
    """Compiles a profile into a folder; see `new_folder` for `force` and `shared`.

    Raises:
        OutputError: the folder exists or cannot be written.
    """
    with new_folder(folder, CIRCUIT_FOLDER, force=force, shared=shared) as partial:
        machine, plan = compile_profile(name)
        with click.progressbar(
            length=TENSORS_PER_LAYER * len(plan.layers) + 3,
            label=f"emitting {name}",
            file=sys.stderr,
            hidden=quiet,
        ) as bar:
            write_circuit(machine, plan, partial, lambda _: bar.update(1))


def ensure_circuit(name: str, *, force: bool = False, quiet: bool = False) -> Path:
    """The cached circuit of a profile, compiled now if it is missing or `force` is set.

    Raises:
        OutputError: the cache cannot be written.
    """
    folder = cached_circuit(name)
    if not find_entry(folder) or force:
        emit_circuit(name, folder, force=force, shared=True, quiet=quiet)
    return folder


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a circuit that was just written or found in the cache."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    return manifest
