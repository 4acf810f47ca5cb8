"""Runs a netlist on exact numbers: what the weights must compute, without weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from qgpu_isa import Token, TokenClass

from qgpu_circuit.model_shape import CONV_KERNEL
from qgpu_circuit.netlist import ONE, Head, Lin, NetId, Netlist
from qgpu_circuit.numerics import round_bf16
from qgpu_circuit.signals import Machine

Vector = np.ndarray[Any, Any]
"""float64 [nets]."""


@dataclass(frozen=True)
class Rows:
    """Sparse linear expressions: row r is the sum of weights[k] * x[nets[k]] over its entries."""

    starts: Vector
    nets: Vector
    weights: Vector

    @staticmethod
    def of(lins: Sequence[Lin]) -> Rows:
        starts: list[int] = []
        nets: list[int] = []
        weights: list[float] = []
        for lin in lins:
            starts.append(len(nets))
            terms = lin.terms or {ONE: 0.0}
            nets += list(terms)
            weights += list(terms.values())
        return Rows(
            np.array(starts, dtype=np.int64),
            np.array(nets, dtype=np.int64),
            np.array(weights, dtype=np.float64),
        )

    def __call__(self, x: Vector) -> Vector:
        sums: Vector = np.add.reduceat(self.weights * x[self.nets], self.starts)
        return sums


class _Neurons:
    """All neurons of one level."""

    def __init__(self, netlist: Netlist, ops: Sequence[int]) -> None:
        neurons = [neuron for op in ops for neuron in netlist.ops[op].neurons]
        self.names = [netlist.ops[op].name for op in ops for _ in netlist.ops[op].neurons]
        self.gate = Rows.of([neuron.gate for neuron in neurons])
        self.up = Rows.of([neuron.up for neuron in neurons])
        outs = [(r, net, w) for r, neuron in enumerate(neurons) for net, w in neuron.outs]
        self.source = np.array([r for r, _, _ in outs])
        self.target = np.array([net for _, net, _ in outs])
        self.weight = np.array([w for _, _, w in outs])

    def apply(self, x: Vector) -> None:
        """Adds what the neurons compute.

        Raises:
            ValueError: a number that bf16 does not hold: the weights would round it.
        """
        gate = np.maximum(self.gate(x), 0.0)
        value = gate * self.up(x)
        for what, numbers in (("gate", gate), ("product", value)):
            wrong = np.flatnonzero(round_bf16(numbers.astype(np.float32)) != numbers)
            if len(wrong):
                first = int(wrong[0])
                raise ValueError(f"{self.names[first]}: {what} {numbers[first]} is no bf16 number")
        np.add.at(x, self.target, value[self.source] * self.weight)


class _HeadState:
    """One head's state and its last values (for the convolution's taps)."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.values = Rows.of(head.values)
        self.enables = Rows.of([head.write_enable, head.read_enable])
        self.write = Rows.of(head.write_address) if head.write_address else None
        self.read = Rows.of(head.read_address) if head.read_address else None
        width = len(head.values)
        self.taps = np.array(head.taps) if head.taps else np.zeros(width, dtype=int)
        self.reset()
        kept = [(c, net) for c, net in enumerate(head.outs) if net is not None]
        self.columns = np.array([c for c, _ in kept])
        self.nets = np.array([net for _, net in kept])

    def reset(self) -> None:
        """Forgets everything."""
        width = len(self.head.values)
        self.state = np.zeros((self.head.rows, width))
        self.history = np.zeros((CONV_KERNEL, width))

    def apply(self, x: Vector) -> None:
        """Writes, then reads.

        Before the first EXEC some addresses come from rows never written; nothing uses what they
        read, which is 0 here.

        Raises:
            ValueError: an enable or a written address is not a bit.
        """
        self.history = np.roll(self.history, 1, axis=0)
        self.history[0] = self.values(x)
        value = self.history[self.taps, np.arange(len(self.taps))]
        write, read = self.enables(x)
        if write not in (0.0, 1.0) or read not in (0.0, 1.0):
            raise ValueError(f"{self.head.name}: enables are {write}, {read}")
        if write:
            row = self._row(self.write, x)
            if row is None:
                raise ValueError(f"{self.head.name}: the written address is not made of bits")
            self.state[row] = value if self.head.gather else 2 * value - 1
        if read:
            if self.head.gather:
                found = self.state[: self.head.gather].sum(axis=0)
            else:
                at = self._row(self.read, x)
                found = np.zeros(self.state.shape[1]) if at is None else self.state[at]
            np.add.at(x, self.nets, found[self.columns])

    def _row(self, address: Rows | None, x: Vector) -> int | None:
        if address is None:
            return 0
        bits = address(x)
        if not np.isin(bits, (0.0, 1.0)).all():
            return None
        return int((bits * (1 << np.arange(len(bits)))).sum())


def levels(netlist: Netlist) -> list[list[int]]:
    """Ops by level: an op reads only nets that lower levels finish."""
    done: dict[NetId, int] = {}
    out: list[list[int]] = []
    for index, op in enumerate(netlist.ops):
        level = 1 + max((done.get(net, -1) for net in op.inputs()), default=-1)
        for net in op.outputs():
            done[net] = max(done.get(net, -1), level)
        while len(out) <= level:
            out.append([])
        out[level].append(index)
    return out


class Simulator:
    """A netlist with its state, fed token by token."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        netlist = machine.netlist
        self.steps: list[_Neurons | _HeadState] = []
        self.heads: dict[str, _HeadState] = {}
        for level in levels(netlist):
            mlp = [i for i in level if netlist.ops[i].neurons]
            if mlp:
                self.steps.append(_Neurons(netlist, mlp))
            for i in level:
                head = netlist.ops[i].head
                if head is not None:
                    state = _HeadState(head)
                    self.heads[netlist.ops[i].name] = state
                    self.steps.append(state)
        self.values: Vector = np.zeros(len(netlist.names))

    def reset(self) -> None:
        """Starts over with empty memories."""
        for head in self.heads.values():
            head.reset()

    def step(self, token: Token) -> Token | None:
        """Feeds a token.

        Returns:
            the token whose code the circuit drives, None if it is no token's.
        """
        m = self.machine
        x = np.zeros(len(m.netlist.names))
        x[ONE] = 1.0
        for net, value in m.input_values.items():
            x[net] = value(token)
        for step in self.steps:
            step.apply(x)
        self.values = x
        return decode_code(m, [x[net] for net in m.netlist.outputs])

    def net(self, name: str) -> float:
        """The value of a named net on the last token."""
        return float(self.values[self.machine.netlist.names.index(name)])


def decode_code(m: Machine, signs: Sequence[float]) -> Token | None:
    """The token with this code, None if there is none."""
    if any(s not in (1.0, -1.0) for s in signs):
        return None
    code = sum(1 << i for i, s in enumerate(signs) if s > 0)
    low = m.vocab.payload_code_bits
    try:
        cls = TokenClass(code >> low)
    except ValueError:
        return None
    values = []
    for field in m.vocab.fields[cls]:
        values.append(code & ((1 << field.width) - 1))
        code >>= field.width
    return Token(cls, tuple(values))
