"""Slot X: products, and shifts as products with a power of two."""

from __future__ import annotations

from qgpu_isa import INSTRUCTIONS
from qgpu_isa.machine_config import WORD_BITS

from qgpu_circuit.arithmetic.multiply import MultiplyControl, multiply
from qgpu_circuit.gates import match, step_neurons
from qgpu_circuit.netlist import Lin, Neuron, lin, total
from qgpu_circuit.signals import Machine
from qgpu_circuit.units.operands import Word

ONE = Lin.of(1)
AMOUNT_BITS = 5
BYTE_BITS = 2


def build_multiplier(m: Machine, ops: dict[str, Lin], a: list[Word], b: list[Word]) -> list[Word]:
    """The slot's result per lane."""
    rows = {name: INSTRUCTIONS[name].unit for name in ops}

    def where(**fields: object) -> Lin:
        return total(
            ops[name]
            for name, unit in rows.items()
            if all(getattr(unit, key) == value for key, value in fields.items())
        )

    control = MultiplyControl(
        low=where(high=False),
        high=where(high=True),
        signed_a=where(signed_a=True),
        signed_b=where(signed_b=True),
        both_signed=where(signed_a=True, signed_b=True),
        only_a_signed=where(signed_a=True, signed_b=False),
    )
    plain = where(shift="none")
    left = where(shift="left")
    right = where(shift="right")
    by_bytes = where(shift="bytes")
    arithmetic = where(shift="right", signed_a=True)
    results = []
    for lane in range(m.config.lanes):
        with m.netlist.scope(f"lane{lane}"):
            factor = _factor(m, b[lane], plain, left, right, arithmetic, by_bytes)
            results.append(multiply(m.netlist, a[lane], factor, control))
    return results


def _factor(
    m: Machine, b: Word, plain: Lin, left: Lin, right: Lin, arithmetic: Lin, by_bytes: Lin
) -> list[Lin]:
    """`b`, or the power of two that shifts by `b`: 2**b to the left, 2**(32-b) to the right.

    Amounts from 32 on match no power, so the product is 0; an arithmetic shift takes them as 31.
    """
    n = m.netlist
    beyond = total(b[AMOUNT_BITS:])
    factor = []
    for j in range(WORD_BITS + 1):
        net = n.net(f"factor[{j}]")
        out = ((net, 1.0),)
        neurons = []
        if j < WORD_BITS:
            neurons.append(Neuron(plain + b[j] - 1, ONE, out))
            neurons.append(Neuron(match(b[:AMOUNT_BITS], j) + left - 1 - beyond, ONE, out))
        if j < WORD_BITS and j % 8 == 0:
            neurons.append(Neuron(match(b[:BYTE_BITS], j // 8) + by_bytes - 1, ONE, out))
        if 0 < j <= WORD_BITS:
            amount = WORD_BITS - j
            neurons.append(Neuron(match(b[:AMOUNT_BITS], amount) + right - 1 - beyond, ONE, out))
        if j == 1:
            neurons += step_neurons(net, beyond + (arithmetic - 1) * WORD_BITS)
        n.add(f"factor[{j}]", neurons)
        factor.append(lin(net))
    return factor
