"""The circuit as a flat netlist: nets, SwiGLU neurons and DeltaNet heads.

A net is an exact small number that lives in one dimension of the residual stream from the layer
that produces it to the last one that reads it. Everything a neuron or a head reads is a linear
expression over nets, since the projections of a transformer layer are linear and free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NewType

NetId = NewType("NetId", int)

ONE = NetId(0)
"""The net that is 1 on every GPU token (and 0 on text)."""


class Lin:
    """A linear expression over nets. The constant is the coefficient of the net `ONE`."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[NetId, float] | None = None) -> None:
        self.terms: dict[NetId, float] = {n: c for n, c in (terms or {}).items() if c}

    @staticmethod
    def of(value: LinLike) -> Lin:
        """The expression that a net's expression or a number stands for."""
        return value if isinstance(value, Lin) else Lin({ONE: float(value)})

    def __add__(self, other: LinLike) -> Lin:
        terms = dict(self.terms)
        for net, coefficient in Lin.of(other).terms.items():
            terms[net] = terms.get(net, 0.0) + coefficient
        return Lin(terms)

    __radd__ = __add__

    def __mul__(self, factor: float) -> Lin:
        return Lin({n: c * factor for n, c in self.terms.items()})

    __rmul__ = __mul__

    def __neg__(self) -> Lin:
        return self * -1

    def __sub__(self, other: LinLike) -> Lin:
        return self + -Lin.of(other)

    def __rsub__(self, other: LinLike) -> Lin:
        return Lin.of(other) - self


LinLike = Lin | int | float


def total(parts: Iterable[LinLike]) -> Lin:
    """The sum of expressions."""
    terms: dict[NetId, float] = {}
    for part in parts:
        for net, coefficient in Lin.of(part).terms.items():
            terms[net] = terms.get(net, 0.0) + coefficient
    return Lin(terms)


def number(bits: Iterable[Lin]) -> Lin:
    """The unsigned number whose bits, lowest first, these are."""
    return total(bit * (1 << i) for i, bit in enumerate(bits))


@dataclass(frozen=True)
class Neuron:
    """One SwiGLU neuron: `relu(gate) * up`, added to `outs` with the given coefficients.

    `gate` is an integer on every token (exactly: `silu` of 128 times it is 128 times its positive
    part), `up` a number that bf16 holds.
    """

    gate: Lin
    up: Lin
    outs: tuple[tuple[NetId, float], ...]


@dataclass(frozen=True)
class Head:
    """One Gated DeltaNet head used as a memory of `rows` rows.

    On every token: where `write_enable` is 1, the row addressed by `write_address` becomes
    `values`; then, where `read_enable` is 1, the row addressed by `read_address` is added to
    `outs`. A stored bit reads as +1 or -1, a row never written as 0. With `gather`, every row
    below `gather` is read at once: rows hold 1 in distinct columns and 0 elsewhere, each row
    exactly one 1, and read as 1 or 0.

    Attributes:
        values: one expression per column, 0 or 1 (or with `taps`, see there).
        taps: per column, how many tokens back its value is taken (0 to 3), by the convolution.
    """

    name: str
    rows: int
    write_address: tuple[Lin, ...]
    write_enable: Lin
    read_address: tuple[Lin, ...]
    read_enable: Lin
    values: tuple[Lin, ...]
    outs: tuple[NetId | None, ...]
    taps: tuple[int, ...] = ()
    gather: int = 0

    def inputs(self) -> Iterator[Lin]:
        """Every expression the head reads."""
        yield from self.write_address
        yield from self.read_address
        yield self.write_enable
        yield self.read_enable
        yield from self.values


class Urgency(Enum):
    """How early an op is scheduled.

    LAST: as late as its readers allow. LATE: so too, but earlier where that frees dimensions.
    SOON: when the other readers of what it stores are done. EARLY: as early as its inputs allow,
    with everything it depends on.
    """

    LAST = "last"
    LATE = "late"
    SOON = "soon"
    EARLY = "early"


@dataclass(frozen=True)
class Op:
    """Neurons that belong together (same layer), or one head.

    `name` is the path of its scope, for reports.
    """

    name: str
    neurons: tuple[Neuron, ...] = ()
    head: Head | None = None
    urgency: Urgency = Urgency.LATE

    @property
    def unit(self) -> str:
        """The unit of the machine it belongs to."""
        return self.name.split("/")[0]

    def inputs(self) -> set[NetId]:
        """Nets the op reads, `ONE` aside."""
        nets: set[NetId] = set()
        if self.head is not None:
            for lin in self.head.inputs():
                nets.update(lin.terms)
        for neuron in self.neurons:
            nets.update(neuron.gate.terms)
            nets.update(neuron.up.terms)
        nets.discard(ONE)
        return nets

    def outputs(self) -> set[NetId]:
        """Nets the op contributes to."""
        if self.head is not None:
            return {net for net in self.head.outs if net is not None}
        return {net for neuron in self.neurons for net, _ in neuron.outs}


@dataclass
class Netlist:
    """The circuit under construction, and the finished one.

    Attributes:
        names: path name of every net.
        inputs: nets that the token embedding provides.
        code: those among them that are the token's code, lowest bit first.
        outputs: nets whose values are the code of the next token, lowest code bit first.
        ops: in order of definition; an op reads only nets that were defined before it.
    """

    names: list[str] = field(default_factory=lambda: ["one"])
    inputs: list[NetId] = field(default_factory=list)
    code: list[NetId] = field(default_factory=list)
    outputs: list[NetId] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    _scope: list[str] = field(default_factory=list)
    _urgency: Urgency = Urgency.LATE

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names within are prefixed with `name/`."""
        self._scope.append(name)
        try:
            yield
        finally:
            self._scope.pop()

    @contextmanager
    def urgent(self, urgency: Urgency) -> Iterator[None]:
        """Ops within have the given urgency."""
        before, self._urgency = self._urgency, urgency
        try:
            yield
        finally:
            self._urgency = before

    def path(self, name: str) -> str:
        """`name` with the current scopes in front."""
        return "/".join([*self._scope, name])

    def net(self, name: str) -> NetId:
        """A new net; ops that contribute to it follow."""
        self.names.append(self.path(name))
        return NetId(len(self.names) - 1)

    def add(self, name: str, neurons: Iterable[Neuron]) -> None:
        """Adds an MLP op."""
        self.ops.append(Op(self.path(name), neurons=tuple(neurons), urgency=self._urgency))

    def add_head(self, head: Head) -> None:
        """Adds a head, its name prefixed with the scopes."""
        path = self.path(head.name)
        self.ops.append(Op(path, head=replace(head, name=path), urgency=self._urgency))


def lin(net: NetId) -> Lin:
    """The expression that is one net."""
    return Lin({net: 1.0})
