"""Addition by nibbles with carry look-ahead: three MLP layers for any width up to 32 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu_circuit.gates import bit_of, step, step_neurons, table_neurons
from qgpu_circuit.netlist import Lin, LinLike, NetId, Netlist, Neuron, lin, total

NIBBLE = 4


@dataclass(frozen=True)
class Groups:
    """Nibble sums before carries.

    Attributes:
        sums: S_k, 0 to 30.
        generate: whether S_k >= 16.
        pass_on: whether S_k >= 15 (generates or propagates).
    """

    sums: list[Lin]
    generate: list[Lin]
    pass_on: list[Lin]


def nibble_groups(
    n: Netlist, name: str, variants: Sequence[tuple[Lin | None, Sequence[Lin]]]
) -> Groups:
    """First layer: the nibble sums of whichever variant is enabled.

    Args:
        variants: (enable, per nibble the expression of its sum); at most one enable is 1; an
            enable of None means always. Where no variant is enabled, everything is 0.
    """
    count = len(variants[0][1])
    groups = Groups([], [], [])
    for k in range(count):
        nets = [n.net(f"{name}/{part}[{k}]") for part in ("sum", "generate", "pass_on")]
        neurons: list[Neuron] = []
        for enable, sums in variants:
            gate, off = (Lin.of(1), Lin.of(0)) if enable is None else (enable, (enable - 1) * 32)
            neurons.append(Neuron(gate, sums[k], ((nets[0], 1.0),)))
            neurons += step_neurons(nets[1], sums[k] - 15 + off)
            neurons += step_neurons(nets[2], sums[k] - 14 + off)
        n.add(f"{name}/nibble[{k}]", neurons)
        groups.sums.append(lin(nets[0]))
        groups.generate.append(lin(nets[1]))
        groups.pass_on.append(lin(nets[2]))
    return groups


def carries(
    n: Netlist, name: str, groups: Groups, carry_in: LinLike, first: int = 0, count: int = 8
) -> list[Lin]:
    """Second layer: carries out of nibbles `first` to `first + count - 1`.

    Reading (generate, pass_on) of a nibble as a digit 0 to 2, a carry leaves nibble k where the
    number of those digits up to k, plus the carry in, reaches 2**(k+1): one threshold.
    """
    out = []
    for k in range(count):
        digits = total(
            (groups.generate[first + j] + groups.pass_on[first + j]) * (1 << j)
            for j in range(k + 1)
        )
        out.append(step(n, f"{name}[{first + k}]", digits + carry_in - (1 << (k + 1)) + 1))
    return out


def sum_bits(
    n: Netlist, name: str, value: Lin, carry: Lin, enable: LinLike, outs: Sequence[NetId]
) -> None:
    """Third layer: adds the bits of a nibble's sum to `outs`, if enabled.

    `value` is the sum with the carry in, 0 to 31, `carry` the nibble's carry out.
    """
    functions = [(net, bit_of(i)) for i, net in enumerate(outs)]
    rest = value - carry * (1 << NIBBLE)
    n.add(name, table_neurons(rest, (1 << NIBBLE) - 1, functions, enable))
