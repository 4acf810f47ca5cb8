"""Removes what is always 0 and what nothing reads: terms, neurons, whole ops."""

from __future__ import annotations

from dataclasses import replace

from qgpu_circuit.netlist import ONE, Head, Lin, NetId, Netlist, Op


def prune(netlist: Netlist) -> None:
    """Drops dead parts of a netlist in place; net numbers stay."""
    written = {ONE, *netlist.inputs}.union(*(op.outputs() for op in netlist.ops))
    netlist.ops = [_without_zeros(op, written) for op in netlist.ops]
    # The code stays whole: its places hold the next token's code in the end.
    needed: set[NetId] = {*netlist.outputs, *netlist.code}
    kept: list[Op] = []
    for op in reversed(netlist.ops):
        alive = _alive_part(op, needed)
        if alive is not None:
            kept.append(alive)
            needed |= alive.inputs()
    netlist.ops = kept[::-1]
    netlist.inputs = [net for net in netlist.inputs if net in needed]


def _without_zeros(op: Op, written: set[NetId]) -> Op:
    """The op without terms of nets that nothing writes, which are 0."""

    def strip(lin: Lin) -> Lin:
        return Lin({net: c for net, c in lin.terms.items() if net in written})

    def strip_all(lins: tuple[Lin, ...]) -> tuple[Lin, ...]:
        return tuple(strip(lin) for lin in lins)

    head: Head | None = op.head
    if head is not None:
        head = replace(
            head,
            write_address=strip_all(head.write_address),
            write_enable=strip(head.write_enable),
            read_address=strip_all(head.read_address),
            read_enable=strip(head.read_enable),
            values=strip_all(head.values),
        )
    neurons = [replace(n, gate=strip(n.gate), up=strip(n.up)) for n in op.neurons]
    return replace(op, head=head, neurons=tuple(neurons))


def _alive_part(op: Op, needed: set[NetId]) -> Op | None:
    if op.head is not None:
        outs = tuple(net if net in needed else None for net in op.head.outs)
        if not any(net is not None for net in outs):
            return None
        return replace(op, head=replace(op.head, outs=outs))
    neurons = []
    for neuron in op.neurons:
        used = tuple((net, weight) for net, weight in neuron.outs if net in needed)
        if used and neuron.gate.terms and neuron.up.terms:
            neurons.append(replace(neuron, outs=used))
    return replace(op, neurons=tuple(neurons)) if neurons else None
