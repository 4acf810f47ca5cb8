"""Logic from SwiGLU neurons. Every function returns expressions over new nets.

The one primitive is `relu(gate) * up`; see `numerics.py` for why it is exact in bf16. Costs are
neurons; all gates of this file take one MLP layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from qgpu_circuit.netlist import Lin, LinLike, NetId, Netlist, Neuron, lin, total

UNIT = Lin.of(1)


def relu(n: Netlist, name: str, gate: LinLike, up: LinLike = 1) -> Lin:
    """max(gate, 0) * up: AND, AND-NOT and products. 1 neuron."""
    net = n.net(name)
    n.add(name, [Neuron(Lin.of(gate), Lin.of(up), ((net, 1.0),))])
    return lin(net)


def any_of(n: Netlist, name: str, gates: Iterable[LinLike]) -> Lin:
    """The sum of max(gate, 0) over gates of which at most one is positive. 1 neuron each."""
    net = n.net(name)
    n.add(name, [Neuron(Lin.of(g), UNIT, ((net, 1.0),)) for g in gates])
    return lin(net)


def all_of(*bits: LinLike) -> Lin:
    """A gate expression that is 1 where all bits are 1, else at most 0. Free."""
    return total(bits) - (len(bits) - 1)


def match(bits: Sequence[Lin], value: int) -> Lin:
    """A gate expression that is 1 where the bits equal `value`, else at most 0. Free.

    No bits at all equal anything: the expression is then the constant 1.
    """
    signs = [bit if value >> i & 1 else 1 - bit for i, bit in enumerate(bits)]
    return all_of(*signs)


def step_neurons(net: NetId, gate: LinLike, weight: float = 1.0) -> list[Neuron]:
    """Neurons that add `weight` to a net where the integer `gate` is at least 1."""
    gate = Lin.of(gate)
    return [
        Neuron(gate, UNIT, ((net, weight),)),
        Neuron(gate - 1, UNIT, ((net, -weight),)),
    ]


def step(n: Netlist, name: str, gate: LinLike) -> Lin:
    """1 where the integer `gate` is at least 1, else 0. 2 neurons."""
    net = n.net(name)
    n.add(name, step_neurons(net, gate))
    return lin(net)


def copy(n: Netlist, name: str, value: LinLike) -> Lin:
    """A net that holds the expression, of either sign. 1 neuron."""
    net = n.net(name)
    n.add(name, [Neuron(UNIT, Lin.of(value), ((net, 1.0),))])
    return lin(net)


def xor(n: Netlist, name: str, a: LinLike, b: LinLike) -> Lin:
    """a XOR b. 2 neurons."""
    both = Lin.of(a) + b
    net = n.net(name)
    n.add(name, [Neuron(both, UNIT, ((net, 1.0),)), Neuron(both - 1, UNIT, ((net, -2.0),))])
    return lin(net)


def table_neurons(
    value: LinLike,
    top: int,
    outs: Sequence[tuple[NetId, Callable[[int], int]]],
    enable: LinLike | None = None,
) -> list[Neuron]:
    """Neurons that add f(value) to each net, for an integer `value` from 0 to `top`.

    Each f must be 0 at 0. One neuron a breakpoint serves all functions. Where `enable` (0 or 1) is
    0, nothing is added.
    """
    gate = Lin.of(value)
    if enable is not None:
        gate = gate + (Lin.of(enable) - 1) * (top + 1)
    neurons = []
    for t in range(top):
        weights = []
        for net, f in outs:
            before = f(t - 1) if t else 0
            bend = f(t + 1) - 2 * f(t) + before if t else f(1)
            if bend:
                weights.append((net, float(bend)))
        if weights:
            neurons.append(Neuron(gate - t, UNIT, tuple(weights)))
    return neurons


def bit_of(position: int) -> Callable[[int], int]:
    """The function that takes a bit out of a number."""
    return lambda value: value >> position & 1
