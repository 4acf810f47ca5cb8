"""The nano machine, compiled once a session."""

from __future__ import annotations

from pathlib import Path

import pytest
from qgpu_circuit.circuit_weights import write_circuit
from qgpu_circuit.layers import CircuitPlan
from qgpu_circuit.machine_to_netlist import machine_to_netlist
from qgpu_circuit.model_shape import shape_for
from qgpu_circuit.netlist_to_layers import netlist_to_layers
from qgpu_circuit.signals import Machine
from qgpu_circuit.simulate import Simulator
from qgpu_isa import NANO


@pytest.fixture(scope="session")
def nano() -> Machine:
    return machine_to_netlist(NANO, shape_for(NANO))


@pytest.fixture(scope="session")
def nano_plan(nano: Machine) -> CircuitPlan:
    return netlist_to_layers(nano.netlist, nano.shape)


@pytest.fixture(scope="session")
def nano_folder(
    nano: Machine, nano_plan: CircuitPlan, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("circuits") / "nano"
    folder.mkdir()
    write_circuit(nano, nano_plan, folder)
    return folder


@pytest.fixture(scope="session")
def _nano_simulator(nano: Machine) -> Simulator:
    return Simulator(nano)


@pytest.fixture
def nano_simulator(_nano_simulator: Simulator) -> Simulator:
    _nano_simulator.reset()
    return _nano_simulator
