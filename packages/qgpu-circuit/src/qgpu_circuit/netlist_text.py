"""A netlist as text, one op a line."""

from __future__ import annotations

from collections.abc import Iterator

from qgpu_circuit.layers import CircuitPlan
from qgpu_circuit.match_names import match_names
from qgpu_circuit.netlist import Lin
from qgpu_circuit.signals import Machine


def netlist_lines(m: Machine, plan: CircuitPlan, match: str = "") -> Iterator[str]:
    """Lines of all ops whose name contains `match`.

    Raises:
        NoMatchError: there are none.
    """
    names = m.netlist.names
    layer_of_head = {h.name: i for i, layer in enumerate(plan.layers) for h in layer.heads}
    layer_of_neuron = {id(x): i for i, layer in enumerate(plan.layers) for x in layer.neurons}
    ops = m.netlist.ops
    for op in (ops[i] for i in match_names([op.name for op in ops], match, "op")):
        if op.head is not None:
            reads = ", ".join(names[n] for n in sorted(op.inputs())[:6])
            yield f"layer {layer_of_head[op.name]:2} head {op.name}: reads {reads}, ..."
            continue
        for neuron in op.neurons:
            outs = ", ".join(f"{names[n]} += {c:g}" for n, c in neuron.outs[:4])
            more = ", ..." if len(neuron.outs) > 4 else ""
            up = "" if neuron.up.terms == {0: 1.0} else f" * ({lin_text(names, neuron.up)})"
            where = layer_of_neuron[id(neuron)]
            value = f"relu({lin_text(names, neuron.gate)}){up}"
            yield f"layer {where:2} {op.name}: {value} -> {outs}{more}"


def lin_text(names: list[str], lin: Lin) -> str:
    """A linear expression with the names of its nets."""
    parts = []
    for net, c in lin.terms.items():
        parts.append(f"{c:+g}" if net == 0 else f"{c:+g} {names[net]}")
    return " ".join(parts) or "0"
