"""What drives the bits of the next token's code."""

from __future__ import annotations

from qgpu_isa import TokenClass

from qgpu_circuit.netlist import Lin, LinLike, NetId, Neuron
from qgpu_circuit.signals import Machine

ONE = Lin.of(1)


class CodeWriter:
    """Collects what drives the bits of the next token's code."""

    def __init__(self, m: Machine) -> None:
        self.m = m
        self.nets = [m.netlist.net(f"out[{i}]") for i in range(m.vocab.code_bits)]

    def drive(self, name: str, gate: LinLike, bits: dict[int, int]) -> None:
        """Where `gate` is 1, adds 1 (or the given weight) to the code bits."""
        outs: tuple[tuple[NetId, float], ...] = tuple(
            (self.nets[i], 2.0 * weight) for i, weight in bits.items() if weight
        )
        if outs:
            self.m.netlist.add(f"out/{name}", [Neuron(Lin.of(gate), ONE, outs)])

    def class_bits(self, cls: TokenClass, weight: int = 1) -> dict[int, int]:
        """The class part of a code."""
        base = self.m.vocab.payload_code_bits
        width = len(self.nets) - base
        return {base + i: weight for i in range(width) if cls >> i & 1}

    def field(self, cls: TokenClass, name: str, value: int) -> dict[int, int]:
        """A constant field."""
        places = self.m.vocab.field_bits(cls, name)
        return {p: 1 for i, p in enumerate(places) if value >> i & 1}

    def finish(self) -> None:
        """Turns bits into signs and declares them the circuit's outputs."""
        bias = tuple((net, -1.0) for net in self.nets)
        self.m.netlist.add("out/bias", [Neuron(ONE, ONE, bias)])
        self.m.netlist.outputs = list(self.nets)
