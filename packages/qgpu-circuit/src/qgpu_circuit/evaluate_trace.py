"""Emitted weights and netlist side by side on one token trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from qgpu_isa import MachineConfig

from qgpu_circuit.evaluate import CircuitFileError, Evaluator
from qgpu_circuit.machine_to_netlist import machine_to_netlist
from qgpu_circuit.model_shape import shape_for
from qgpu_circuit.simulate import Simulator


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
        return f"{self.token:24} -> {self.weights:24} margin {self.margin:g}{same}{nets}"


def evaluate_trace(folder: Path, text: str, nets: tuple[str, ...] = ()) -> Iterator[TraceStep]:
    """Feeds the token ids in `text` (a JSON list, or one a line).

    Raises:
        CircuitFileError: the folder holds no circuit of this version, or the text no token ids.
    """
    evaluator = Evaluator(folder)
    config = MachineConfig(**evaluator.manifest["machine"])
    machine = machine_to_netlist(config, shape_for(config))
    simulator = Simulator(machine)
    vocab = machine.vocab
    watched = [(i, n) for i, n in enumerate(machine.netlist.names) if any(w in n for w in nets)]
    for token_id in _token_ids(text, vocab.size):
        token = vocab.decode(token_id)
        best, margin = evaluator.step(token_id)
        answer = simulator.step(token)
        yield TraceStep(
            str(token),
            str(vocab.decode(best)),
            None if answer is None else str(answer),
            margin,
            {name: float(simulator.values[i]) for i, name in watched},
        )


def _token_ids(text: str, size: int) -> list[int]:
    try:
        stripped = text.strip()
        ids = json.loads(stripped) if stripped.startswith("[") else [int(x) for x in text.split()]
        ids = [int(x) for x in ids]
    except (ValueError, TypeError):
        raise CircuitFileError("the trace holds something that is not a token id") from None
    for token_id in ids:
        if not 0 <= token_id < size:
            raise CircuitFileError(f"token id {token_id} is not below {size}")
    return ids
