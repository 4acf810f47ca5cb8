"""Emitted weights and netlist side by side on one token trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from qgpu_isa import MachineConfig

from qgpu_circuit.evaluate import Evaluator
from qgpu_circuit.machine_to_netlist import machine_to_netlist
from qgpu_circuit.match_names import match_names
from qgpu_circuit.model_shape import ModelShape
from qgpu_circuit.simulate import Simulator
from qgpu_circuit.token_trace import TokenTrace


@dataclass(frozen=True)
class TraceStep:
    """One token fed, and what the circuit answers.

    Attributes:
        token: the token fed.
        weights: next token by the weights.
        netlist: next token by the netlist, if its code is one.
        margin: distance of the winning logit from the second, in bf16 steps.
        nets: values of the nets asked for.
    """

    token: str
    weights: str
    netlist: str | None
    margin: float
    nets: dict[str, float]

    def as_dict(self) -> dict[str, object]:
        """The step for JSON."""
        return asdict(self)

    def line(self) -> str:
        """The step for people."""
        same = "" if self.netlist == self.weights else f"  netlist: {self.netlist}"
        nets = "".join(f"\n    {name} = {value:g}" for name, value in self.nets.items())
        return f"{self.token:26} -> {self.weights:26} margin {self.margin:g}{same}{nets}"


def evaluate_trace(
    folder: Path, trace: TokenTrace, nets: tuple[str, ...] = ()
) -> Iterator[TraceStep]:
    """Feeds a trace to the circuit in `folder` and to its netlist.

    Raises:
        CircuitFileError: the folder holds no circuit of this version.
        TraceError: the trace is not one of the circuit's machine.
        NoMatchError: there are no such nets.
    """
    evaluator = Evaluator(folder)
    config = MachineConfig(**evaluator.manifest["machine"])
    trace.check(config)
    machine = machine_to_netlist(config, ModelShape.from_manifest(evaluator.manifest["shape"]))
    names = machine.netlist.names
    watched = sorted({i for part in nets for i in match_names(names, part, "net")})
    simulator = Simulator(machine)
    for token_id in trace.ids:
        token = machine.vocab.decode(token_id)
        best, margin = evaluator.step(token_id)
        answer = simulator.step(token)
        yield TraceStep(
            str(token),
            str(machine.vocab.decode(best)),
            None if answer is None else str(answer),
            margin,
            {names[i]: float(simulator.values[i]) for i in watched},
        )
