"""The plan of a circuit's layers: what stands where, before it is numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu_isa.errors import QgpuError

from qgpu_circuit.netlist import Head, NetId, Neuron


class CircuitError(QgpuError):
    """A machine that does not fit a model shape, or a plan that breaks a rule."""


@dataclass
class LayerPlan:
    """One transformer layer.

    Attributes:
        heads: DeltaNet heads, by head index.
        neurons: SwiGLU neurons.
        cleared: nets whose dimension this layer's MLP sets back to 0 (one neuron each).
    """

    heads: list[Head] = field(default_factory=list)
    neurons: list[Neuron] = field(default_factory=list)
    cleared: list[NetId] = field(default_factory=list)


@dataclass
class CircuitPlan:
    """All layers, and where every net lives.

    Attributes:
        dimension: per net, its dimension of the residual stream.
        live: per layer, the number of dimensions in use behind its MLP.
    """

    layers: list[LayerPlan]
    dimension: dict[NetId, int]
    live: list[int]
