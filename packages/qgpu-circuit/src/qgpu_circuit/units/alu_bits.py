"""Instructions of an ALU that count, reverse or pick the bits of `a`: one layer of neurons."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qgpu_isa.machine_config import WORD_BITS
from qgpu_isa.units import Alu

from qgpu_circuit.gates import bit_of, match, table_neurons
from qgpu_circuit.netlist import Lin, NetId, Neuron, total

ONE = Lin.of(1)
BYTE_ADDRESS_BITS = 2
PARTS = {"byte": 8, "half": 16}

Where = Callable[[Callable[[Alu], bool]], Lin]
"""1 where the slot holds an instruction whose control row fulfils a condition."""


def count_and_pick(
    where: Where, a: Sequence[Lin], b: Sequence[Lin], nets: Sequence[NetId]
) -> dict[str, list[Neuron]]:
    """Neurons that add the result to `nets`, by a name; none for a slot without such instructions.

    Small groups find room in layers that others nearly fill.
    """
    groups: dict[str, list[Neuron]] = {}
    ones, leading, trailing, reverse = (
        where(lambda u, r=result: u.result == r)  # type: ignore[misc]
        for result in ("ones", "leading", "trailing", "reverse")
    )
    if ones.terms:
        digits = [(net, bit_of(i)) for i, net in enumerate(nets[: WORD_BITS.bit_length()])]
        groups["ones"] = table_neurons(total(a), WORD_BITS, digits, ones)
    if leading.terms:
        groups["leading"] = _leading_zeros(leading, a, nets)
    if trailing.terms:
        groups["trailing"] = _leading_zeros(trailing, a[::-1], nets)
    if reverse.terms:
        mirrored = zip(reversed(a), nets, strict=True)
        groups["reverse"] = [Neuron(bit + reverse - 1, ONE, ((net, 1.0),)) for bit, net in mirrored]
    for result, bits in PARTS.items():
        picks = where(lambda u, r=result: u.result == r)  # type: ignore[misc]
        if picks.terms:
            extends = where(lambda u, r=result: u.result == r and u.extend)  # type: ignore[misc]
            groups[result] = _pick(picks, extends, bits, a, b, nets)
    clears = where(lambda u: u.result == "clear_byte")
    if clears.terms:
        groups["clear"] = _clear(clears, a, b, nets)
    return groups


def _leading_zeros(enable: Lin, a: Sequence[Lin], nets: Sequence[NetId]) -> list[Neuron]:
    """The highest one is the one without any above it; its place decides all digits."""
    neurons = []
    for place in range(-1, WORD_BITS):
        count = WORD_BITS - 1 - place
        outs = tuple((net, 1.0) for i, net in enumerate(nets) if count >> i & 1)
        if outs:
            here = a[place] - 1 if place >= 0 else Lin()
            neurons.append(Neuron(here - total(a[place + 1 :]) + enable, ONE, outs))
    return neurons


def _clear(enable: Lin, a: Sequence[Lin], b: Sequence[Lin], nets: Sequence[NetId]) -> list[Neuron]:
    """All of `a`, less the byte that `b` names."""
    neurons = []
    for i, net in enumerate(nets):
        neurons.append(Neuron(a[i] + enable - 1, ONE, ((net, 1.0),)))
        chosen = match(b[:BYTE_ADDRESS_BITS], i // 8)
        neurons.append(Neuron(a[i] + enable + chosen - 2, ONE, ((net, -1.0),)))
    return neurons


def _pick(
    enable: Lin,
    extends: Lin,
    bits: int,
    a: Sequence[Lin],
    b: Sequence[Lin],
    nets: Sequence[NetId],
) -> list[Neuron]:
    """One neuron for each bit of `a`, gated by its part's number in the low bits of `b`."""
    number = b[(bits // 8).bit_length() - 1 : BYTE_ADDRESS_BITS]
    neurons = []
    for part in range(WORD_BITS // bits):
        chosen = match(number, part)
        for i in range(bits):
            gate = a[part * bits + i] + chosen - 2
            neurons.append(Neuron(gate + enable, ONE, ((nets[i], 1.0),)))
        sign = a[part * bits + bits - 1] + chosen - 2
        neurons.append(Neuron(sign + extends, ONE, tuple((net, 1.0) for net in nets[bits:])))
    return neurons
