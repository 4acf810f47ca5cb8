"""What every unit of the machine can see: the token, the record in progress, the ROM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from qgpu_isa import MachineConfig, Token, TokenClass, Vocabulary, vocabulary

from qgpu_circuit.model_shape import ModelShape
from qgpu_circuit.netlist import Head, Lin, LinLike, NetId, Netlist, lin


def from_sign(x: Lin) -> Lin:
    """The bit whose sign code (+1 or -1) is x."""
    return x * 0.5 + 0.5


def sign_match(signs: Sequence[Lin], value: int) -> Lin:
    """A gate expression over sign codes: 1 where they spell `value`, else at most -1.

    Codes that read 0 (a row never written) match nothing.
    """
    terms = Lin.of(1 - len(signs))
    for i, x in enumerate(signs):
        terms = terms + (x if value >> i & 1 else -x)
    return terms


@dataclass
class Machine:
    """A netlist under construction for one machine and model shape.

    Attributes:
        input_values: per input net, its value on a token.
    """

    config: MachineConfig
    shape: ModelShape
    netlist: Netlist = field(default_factory=Netlist)
    input_values: dict[NetId, Callable[[Token], float]] = field(default_factory=dict)
    memory_heads: list[list[str]] = field(default_factory=list)

    @property
    def vocab(self) -> Vocabulary:
        return vocabulary(self.config)

    def input(self, name: str, value: Callable[[Token], float]) -> Lin:
        """A net that the embedding provides."""
        net = self.netlist.net(name)
        self.netlist.inputs.append(net)
        self.input_values[net] = value
        return lin(net)

    def memory(
        self,
        name: str,
        values: Sequence[Lin],
        *,
        write_enable: LinLike,
        read_enable: LinLike = 1,
        write_address: Sequence[Lin] = (),
        read_address: Sequence[Lin] = (),
        taps: Sequence[int] = (),
        outs: Sequence[NetId | None] | None = None,
    ) -> list[Lin]:
        """One head that stores a row of bits; returns what it reads, as sign codes.

        Columns beyond the values are filled so that every row has the same norm.
        """
        n = self.netlist
        if outs is None:
            outs = [n.net(f"{name}[{i}]") for i in range(len(values))]
        n.add_head(
            Head(
                name=name,
                rows=self.shape.rows,
                write_address=tuple(write_address),
                write_enable=Lin.of(write_enable),
                read_address=tuple(read_address),
                read_enable=Lin.of(read_enable),
                values=tuple(values),
                outs=tuple(outs),
                taps=tuple(taps),
            )
        )
        return [lin(net) for net in outs if net is not None]


def class_is(cls: TokenClass) -> Callable[[Token], float]:
    """1 on tokens of a class."""
    return lambda token: float(token.cls is cls)


def field_bit(
    vocab: Vocabulary, classes: Sequence[TokenClass], name: str, bit: int
) -> Callable[[Token], float]:
    """Bit `bit` of field `name` on tokens of the classes, 0 elsewhere."""
    return _field(vocab, classes, name, lambda value: value >> bit & 1)


def field_is(
    vocab: Vocabulary, classes: Sequence[TokenClass], name: str, wanted: int
) -> Callable[[Token], float]:
    """1 on tokens of the classes whose field `name` is `wanted`, 0 elsewhere."""
    return _field(vocab, classes, name, lambda value: value == wanted)


def _field(
    vocab: Vocabulary, classes: Sequence[TokenClass], name: str, take: Callable[[int], int]
) -> Callable[[Token], float]:
    index = {cls: [f.name for f in vocab.fields[cls]].index(name) for cls in classes}

    def value(token: Token) -> float:
        return float(take(token.values[index[token.cls]])) if token.cls in index else 0.0

    return value
