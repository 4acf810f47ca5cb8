"""What a compiled machine costs, unit by unit, and how far its decisions are from flipping."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass

from qgpu_isa import Slot

from qgpu_circuit.layers import CircuitPlan
from qgpu_circuit.layers_to_weights import emit_tensors
from qgpu_circuit.netlist import Neuron
from qgpu_circuit.numerics import find_anchor
from qgpu_circuit.signals import Machine


@dataclass(frozen=True)
class UnitCost:
    """Neurons, heads and nets (each a dimension for some layers) of one unit."""

    neurons: int
    heads: int
    nets: int


@dataclass(frozen=True)
class LayerCost:
    """What one layer holds: heads, neurons that compute, neurons that clear, live dimensions."""

    heads: int
    neurons: int
    clearing: int
    dimensions: int


@dataclass(frozen=True)
class CircuitReport:
    """A machine's sizes and costs.

    Attributes:
        min_margin: smallest distance between the winning logit and the next, in bf16 steps of the
            winning one. Codes have equally many signs, so two tokens differ in at least one of
            them: the bound holds for every token the circuit drives.
        gate_margin: smallest distance of a neuron's gate from the other side of its threshold, in
            units of its integer argument (gates are exact integers).
        norm_error: relative error of RMSNorm as the identity; bf16 rounds at 2**-9.
    """

    profile: str
    layers: int
    lanes: int
    slots: int
    threads: int
    registers: int
    predicates: int
    rom_blocks: int
    global_words: int
    shared_words: int
    vocabulary: int
    hidden_size: int
    base_hidden: int
    intermediate_size: int
    neurons: int
    clearing_neurons: int
    heads: int
    peak_dimensions: int
    nonzeros: int
    min_margin: float
    gate_margin: float
    norm_error: float
    units: dict[str, UnitCost]
    per_layer: list[LayerCost]

    def as_dict(self) -> dict[str, object]:
        """The report for JSON."""
        return asdict(self)


def build_report(m: Machine, plan: CircuitPlan) -> CircuitReport:
    """Counts everything; emits all tensors once to count what is not zero."""
    neurons: Counter[str] = Counter()
    heads: Counter[str] = Counter()
    nets: Counter[str] = Counter()
    for op in m.netlist.ops:
        unit = op.unit
        neurons[unit] += len(op.neurons)
        heads[unit] += op.head is not None
        nets[unit] += len(op.outputs())
    config = m.config
    return CircuitReport(
        profile=config.name,
        layers=len(plan.layers),
        lanes=config.lanes,
        slots=len(Slot),
        threads=config.threads,
        registers=config.registers,
        predicates=config.predicates,
        rom_blocks=config.rom_blocks,
        global_words=config.global_words,
        shared_words=config.shared_words,
        vocabulary=m.vocab.size,
        hidden_size=m.shape.hidden_size,
        base_hidden=m.shape.base_hidden,
        intermediate_size=m.shape.intermediate_size,
        neurons=sum(neurons.values()),
        clearing_neurons=sum(len(layer.cleared) for layer in plan.layers),
        heads=sum(heads.values()),
        peak_dimensions=max(plan.live),
        nonzeros=sum(_nonzeros(t.values, t.fill, t.shape) for _, t in emit_tensors(m, plan)),
        min_margin=logit_margin(m.vocab.code_bits),
        gate_margin=gate_margin(m),
        norm_error=find_anchor(m.shape.hidden_size).error,
        units={u: UnitCost(neurons[u], heads[u], nets[u]) for u in neurons},
        per_layer=[
            LayerCost(len(layer.heads), len(layer.neurons), len(layer.cleared), live)
            for layer, live in zip(plan.layers, plan.live, strict=True)
        ],
    )


def _nonzeros(values: list[float], fill: float, shape: tuple[int, ...]) -> int:
    listed = sum(1 for v in values if v)
    return listed + (math.prod(shape) - len(values) if fill else 0)


def logit_margin(code_bits: int) -> float:
    """Distance of a token's logit from the next best, in bf16 steps of the token's.

    All `code_bits` signs agree for the token itself (logit `code_bits`); any other token disagrees
    in at least one, which costs 2. bf16 has 8 significant bits.
    """
    step = 2.0 ** (math.floor(math.log2(code_bits)) - 7)
    return 2.0 / step


def gate_margin(m: Machine) -> float:
    """Half the smallest step that a gate can take, in units of its integer argument.

    Every coefficient of a gate is an integer, or one half on a sign code (+1, -1) together with a
    half in the constant; so gates move in steps of at least 1 and thresholds lie halfway.
    """

    def step_of(neuron: Neuron) -> float:
        return min((abs(c) for c in neuron.gate.terms.values()), default=1.0)

    smallest = min(step_of(n) for op in m.netlist.ops for n in op.neurons)
    return min(1.0, 2 * smallest) / 2
