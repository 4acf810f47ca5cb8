"""The 64-bit product of two words: partial products, counted by column, then added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu_isa.machine_config import WORD_BITS

from qgpu_circuit.arithmetic.carry_lookahead import NIBBLE, carries, nibble_groups, sum_bits
from qgpu_circuit.gates import bit_of, table_neurons
from qgpu_circuit.netlist import Lin, NetId, Netlist, Neuron, lin, number

ONE = Lin.of(1)
PRODUCT_BITS = 2 * WORD_BITS
TOP_SIGN = WORD_BITS - 1


@dataclass(frozen=True)
class MultiplyControl:
    """What the product is wanted for; all are 0 or 1.

    Attributes:
        low, high: which word is the result.
        signed_a, signed_b: how the top bits count.
        both_signed, only_a_signed: products of those (the machine has no signed b alone).
    """

    low: Lin
    high: Lin
    signed_a: Lin
    signed_b: Lin
    both_signed: Lin
    only_a_signed: Lin


def multiply(n: Netlist, a: Sequence[Lin], b: Sequence[Lin], control: MultiplyControl) -> list[Lin]:
    """One word of a * b.

    `b` has 33 bits: shifts to the right by 0 multiply by 2**32. Signs follow Baugh and Wooley (A
    Two's Complement Parallel Array Multiplication Algorithm, 1973): partial products of a top bit
    are inverted and constants added.
    """
    columns = _partial_products(n, a, b, control)
    counts = [(net, _column_size(c) + 1) for c, net in enumerate(columns)]
    for stage in range(3):
        counts = _compress(n, f"stage{stage}", counts)
    return _add(n, [lin(net) for net, _ in counts], control)


def _column_size(c: int) -> int:
    wide = sum(1 for i in range(WORD_BITS) if 0 <= c - i < WORD_BITS)
    return wide + (1 if c >= WORD_BITS else 0)


def _partial_products(
    n: Netlist, a: Sequence[Lin], b: Sequence[Lin], control: MultiplyControl
) -> list[NetId]:
    nets = [n.net(f"column[{c}]") for c in range(PRODUCT_BITS)]
    for c, net in enumerate(nets):
        out = ((net, 1.0),)
        neurons: list[Neuron] = []
        for i in range(WORD_BITS):
            j = c - i
            if not 0 <= j <= WORD_BITS:
                continue
            both = a[i] + b[j]
            neurons.append(Neuron(both - 1, ONE, out))
            invert = _inverted(control, i, j)
            if invert is not None:
                neurons.append(Neuron(invert, ONE, out))
                neurons.append(Neuron(both + invert - 2, ONE, ((net, -2.0),)))
        if c in (WORD_BITS, PRODUCT_BITS - 1):
            neurons.append(Neuron(control.both_signed, ONE, out))
        if c in (WORD_BITS - 1, PRODUCT_BITS - 1):
            neurons.append(Neuron(control.only_a_signed, ONE, out))
        n.add(f"column[{c}]", neurons)
    return nets


def _inverted(control: MultiplyControl, i: int, j: int) -> Lin | None:
    if i == TOP_SIGN and j == TOP_SIGN:
        return control.only_a_signed
    if i == TOP_SIGN and j < TOP_SIGN:
        return control.signed_a
    if j == TOP_SIGN and i < TOP_SIGN:
        return control.signed_b
    return None


def _compress(n: Netlist, name: str, counts: list[tuple[NetId, int]]) -> list[tuple[NetId, int]]:
    """Replaces each column's count by its binary digits, counted in their own columns."""
    nets = [n.net(f"{name}[{c}]") for c in range(PRODUCT_BITS)]
    tops = [0] * PRODUCT_BITS
    for c, (net, top) in enumerate(counts):
        digits = [(nets[c + i], bit_of(i)) for i in range(top.bit_length()) if c + i < PRODUCT_BITS]
        for i in range(len(digits)):
            tops[c + i] += 1
        n.add(f"{name}/digits[{c}]", table_neurons(lin(net), top, digits))
    return list(zip(nets, tops, strict=True))


def _add(n: Netlist, columns: list[Lin], control: MultiplyControl) -> list[Lin]:
    groups = nibble_groups(
        n,
        "add",
        [(None, [number(columns[c : c + NIBBLE]) for c in range(0, PRODUCT_BITS, NIBBLE)])],
    )
    half = WORD_BITS // NIBBLE
    low = carries(n, "add/carry", groups, 0)
    high = [carries(n, f"add/carry_if{c}", groups, c, first=half, count=half) for c in (0, 1)]
    nets = [n.net(f"product[{i}]") for i in range(WORD_BITS)]
    for k in range(half):
        outs = nets[NIBBLE * k : NIBBLE * (k + 1)]
        value = groups.sums[k] + (low[k - 1] if k else 0)
        sum_bits(n, f"add/low[{k}]", value, low[k], control.low, outs)
        for c, enable in ((0, control.high - low[-1]), (1, control.high + low[-1] - 1)):
            value = groups.sums[half + k] + (high[c][k - 1] if k else c)
            sum_bits(n, f"add/high{c}[{k}]", value, high[c][k], enable, outs)
    return [lin(net) for net in nets]
