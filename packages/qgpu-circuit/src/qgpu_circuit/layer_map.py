"""Which part of the machine stands in which layers, counted from the compiled netlist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from qgpu_isa.errors import QgpuError
from qgpu_isa.instruction import Slot

from qgpu_circuit.layers import CircuitPlan
from qgpu_circuit.signals import Machine

PARTS = {
    "token": "what the token is, and which record it belongs to",
    "receive": "write what a record carries into registers and predicates",
    "scheduler": "which pass runs next",
    "fetch": "read the block's row of the program",
    "decode": "which operation each slot does",
    "registers": "read registers and predicates, choose operands",
    "A0": "address arithmetic",
    "memory": "arbitrate the banks, load and store",
    "A1": "first arithmetic unit",
    "multiplier": "products and shifts (X)",
    "A2": "second arithmetic unit",
    "branch": "each lane's next block",
    "live-outs": "which results travel back, and are they other than before",
    "next block": "the smallest block that a lane waits at",
    "output": "write the code of the next token",
}
"""Parts of the machine, in the order in which a token meets them, and what each does."""

_UNITS = {
    "front": "token",
    "receive": "receive",
    "passes": "scheduler",
    "A0": "A0",
    "MEM": "memory",
    "A1": "A1",
    "X": "multiplier",
    "A2": "A2",
    "branch": "branch",
    "live_out": "live-outs",
    "next_block": "next block",
    "emit": "output",
}
_OF_ANY_UNIT = {"rom": "fetch", "dst": "decode"}
_OF_SLOTS = {
    "op": "decode",
    "pred": "registers",
    "predicates": "registers",
    "registers": "registers",
    "a": "registers",
    "b": "registers",
}


class UnknownPartError(QgpuError):
    """An op of the netlist that belongs to no part in `PARTS`."""


@dataclass(frozen=True)
class PartMap:
    """Where one part stands: by layer, its heads and its neurons."""

    heads: dict[int, int]
    neurons: dict[int, int]

    @property
    def layers(self) -> list[int]:
        """Layers that hold something of it."""
        return sorted({*self.heads, *self.neurons})


@dataclass(frozen=True)
class LayerMap:
    """All parts of a machine over its layers.

    Attributes:
        clearing: by layer, neurons that set dimensions back to 0.
        head_budget: heads that a layer has.
        neuron_budget: neurons that a layer has.
    """

    profile: str
    layers: int
    parts: dict[str, PartMap]
    clearing: list[int]
    head_budget: int
    neuron_budget: int

    def heads(self, layer: int) -> int:
        """Heads in use in a layer."""
        return sum(part.heads.get(layer, 0) for part in self.parts.values())

    def neurons(self, layer: int) -> int:
        """Neurons of a layer that compute."""
        return sum(part.neurons.get(layer, 0) for part in self.parts.values())

    def as_dict(self) -> dict[str, object]:
        """The map for JSON."""
        parts = {
            name: {
                "meaning": PARTS[name],
                "layers": part.layers,
                "heads": part.heads,
                "neurons": part.neurons,
            }
            for name, part in self.parts.items()
        }
        return {
            "profile": self.profile,
            "layers": self.layers,
            "head_budget": self.head_budget,
            "neuron_budget": self.neuron_budget,
            "parts": parts,
            "clearing": self.clearing,
        }

    def lines(self) -> Iterator[str]:
        """The map as text, a part a line."""
        places = {name: ranges(part.layers) for name, part in self.parts.items()}
        width = max(map(len, places.values())) + 2
        yield f"{'part':12}{'heads':>5}{'neurons':>9}  {'layers':{width}}what it does"
        for name, part in self.parts.items():
            heads, neurons = sum(part.heads.values()), sum(part.neurons.values())
            yield f"{name:12}{heads:5}{neurons:9}  {places[name]:{width}}{PARTS[name]}"


def part_of(op: str) -> str:
    """The part that an op with this name belongs to.

    Raises:
        UnknownPartError: none.
    """
    unit, _, rest = op.partition("/")
    what = rest.partition("/")[0].partition("[")[0]
    part = _OF_ANY_UNIT.get(what) or (_OF_SLOTS.get(what) if unit in Slot.__members__ else None)
    part = part or _UNITS.get(unit)
    if part is None:
        raise UnknownPartError(f"{op} belongs to no part of the layer map (layer_map.py)")
    return part


def layer_map(m: Machine, plan: CircuitPlan) -> LayerMap:
    """Counts the heads and neurons of every part, layer by layer.

    Raises:
        UnknownPartError: an op belongs to no part.
    """
    layer_of_head = {h.name: i for i, layer in enumerate(plan.layers) for h in layer.heads}
    layer_of_neuron = {id(x): i for i, layer in enumerate(plan.layers) for x in layer.neurons}
    heads: dict[str, Counter[int]] = {name: Counter() for name in PARTS}
    neurons: dict[str, Counter[int]] = {name: Counter() for name in PARTS}
    for op in m.netlist.ops:
        part = part_of(op.name)
        if op.head is not None:
            heads[part][layer_of_head[op.name]] += 1
        for neuron in op.neurons:
            neurons[part][layer_of_neuron[id(neuron)]] += 1
    return LayerMap(
        profile=m.config.name,
        layers=len(plan.layers),
        parts={name: PartMap(dict(heads[name]), dict(neurons[name])) for name in PARTS},
        clearing=[len(layer.cleared) for layer in plan.layers],
        head_budget=m.shape.heads,
        neuron_budget=m.shape.intermediate_size,
    )


def ranges(numbers: list[int]) -> str:
    """Ascending numbers, neighbours joined: `0, 2-4`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in found)
