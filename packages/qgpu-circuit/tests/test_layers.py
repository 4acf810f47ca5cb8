"""The plan obeys the rules of a transformer: order, budgets, one owner a dimension."""

from __future__ import annotations

from dataclasses import replace

import pytest
from qgpu_circuit.layers import CircuitError, CircuitPlan
from qgpu_circuit.machine_to_netlist import machine_to_netlist
from qgpu_circuit.model_shape import shape_for
from qgpu_circuit.netlist import ONE
from qgpu_circuit.netlist_to_layers import Schedule, netlist_to_layers
from qgpu_circuit.signals import Machine
from qgpu_isa import DEFAULT, NANO, PROFILES, SMALL, MachineConfig


@pytest.fixture(scope="module", params=list(PROFILES))
def compiled(request: pytest.FixtureRequest) -> tuple[Machine, CircuitPlan]:
    config = PROFILES[request.param]
    machine = machine_to_netlist(config, shape_for(config))
    return machine, netlist_to_layers(machine.netlist, machine.shape)


def test_every_op_reads_what_earlier_layers_finished(compiled: tuple[Machine, CircuitPlan]) -> None:
    machine, _ = compiled
    schedule = Schedule(machine.netlist, machine.shape)
    for i in range(len(schedule.ops)):
        is_head = schedule.ops[i].head is not None
        assert schedule.time[i] % 2 == (0 if is_head else 1)
        assert all(schedule.ready(net) < schedule.time[i] for net in schedule.inputs[i])


def test_layers_stay_within_the_shape(compiled: tuple[Machine, CircuitPlan]) -> None:
    machine, plan = compiled
    for layer in plan.layers:
        assert len(layer.heads) <= machine.shape.heads
        assert len(layer.neurons) + len(layer.cleared) <= machine.shape.intermediate_size
    assert max(plan.dimension.values()) < machine.shape.hidden_size


def test_a_dimension_is_cleared_before_it_is_used_again(
    compiled: tuple[Machine, CircuitPlan],
) -> None:
    """Walks through the layers with the owner of every dimension."""
    machine, plan = compiled
    owner: dict[int, int] = {plan.dimension[net]: net for net in machine.netlist.inputs}

    def write(net: int) -> None:
        assert owner.setdefault(plan.dimension[net], net) == net

    def read(nets: set[int]) -> None:
        assert all(owner.get(plan.dimension[net]) == net for net in nets - {ONE})

    for layer in plan.layers:
        for head in layer.heads:
            read({net for lin in head.inputs() for net in lin.terms})
        for head in layer.heads:
            for net in head.outs:
                if net is not None:
                    write(net)
        for neuron in layer.neurons:
            read({*neuron.gate.terms, *neuron.up.terms})
        for net in layer.cleared:
            assert owner.pop(plan.dimension[net]) == net
        for neuron in layer.neurons:
            for net, _ in neuron.outs:
                write(net)
    assert all(owner[plan.dimension[net]] == net for net in machine.netlist.outputs)


@pytest.mark.parametrize(("config", "limit"), [(NANO, 40), (SMALL, 44), (DEFAULT, 44)])
def test_depth(config: MachineConfig, limit: int) -> None:
    machine = machine_to_netlist(config, shape_for(config))
    assert len(netlist_to_layers(machine.netlist, machine.shape).layers) <= limit


def test_a_machine_that_does_not_fit_is_refused(nano: Machine) -> None:
    with pytest.raises(CircuitError, match="dimensions"):
        netlist_to_layers(nano.netlist, replace(nano.shape, hidden_size=300))
    with pytest.raises(CircuitError, match="neurons"):
        netlist_to_layers(nano.netlist, replace(nano.shape, intermediate_size=20))
