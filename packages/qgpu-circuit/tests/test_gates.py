"""Gates and arithmetic on their own, simulated on integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qgpu_circuit.arithmetic.carry_lookahead import carries, nibble_groups, sum_bits
from qgpu_circuit.arithmetic.multiply import MultiplyControl, multiply
from qgpu_circuit.gates import any_of, bit_of, copy, match, relu, step, table_neurons, xor
from qgpu_circuit.model_shape import SHAPES
from qgpu_circuit.netlist import Lin, Netlist, lin, number
from qgpu_circuit.signals import Machine
from qgpu_circuit.simulate import Simulator
from qgpu_isa import NANO, Token, TokenClass

CORNERS = (0, 1, 2, 15, 16, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF)
words = st.one_of(st.sampled_from(CORNERS), st.integers(0, 2**32 - 1))
TOKEN = Token(TokenClass.END)


class Bench:
    """A netlist whose inputs are set by hand."""

    def __init__(self, inputs: int, build: Callable[[Netlist, list[Lin]], Sequence[Lin]]) -> None:
        self.values = [0.0] * inputs
        machine = Machine(NANO, SHAPES["nano"])
        nets = [machine.input(f"in[{i}]", lambda _, i=i: self.values[i]) for i in range(inputs)]
        self.outputs = list(build(machine.netlist, nets))
        self.simulator = Simulator(machine)

    def __call__(self, *values: float) -> list[float]:
        self.values[:] = values
        self.simulator.step(TOKEN)
        x = self.simulator.values
        return [sum(c * float(x[n]) for n, c in out.terms.items()) for out in self.outputs]


def test_logic_gates_match_their_truth_tables() -> None:
    bench = Bench(
        2,
        lambda n, x: [
            relu(n, "and", x[0] + x[1] - 1),
            any_of(n, "one", [x[0] - x[1], x[1] - x[0]]),
            xor(n, "xor", x[0], x[1]),
            step(n, "or", x[0] + x[1]),
            copy(n, "difference", x[0] - x[1]),
            relu(n, "two", match(x, 2)),
        ],
    )
    for a in (0, 1):
        for b in (0, 1):
            assert bench(a, b) == [a & b, a ^ b, a ^ b, a | b, a - b, int((b, a) == (1, 0))]


@given(st.integers(1, 40), st.data())
@settings(max_examples=30, deadline=None)
def test_a_table_computes_any_function_that_is_zero_at_zero(top: int, data: st.DataObject) -> None:
    values = [0, *data.draw(st.lists(st.integers(-3, 3), min_size=top, max_size=top))]

    def build(n: Netlist, x: list[Lin]) -> list[Lin]:
        nets = [n.net("f"), n.net("bit")]
        outs = [(nets[0], lambda v: values[min(v, top)]), (nets[1], bit_of(1))]
        n.add("table", table_neurons(x[0], top, outs, x[1]))
        return [lin(net) for net in nets]

    bench = Bench(2, build)
    for v in range(top + 1):
        assert bench(v, 1) == [values[v], v >> 1 & 1]
        assert bench(v, 0) == [0, 0]


def _adder(n: Netlist, x: list[Lin]) -> list[Lin]:
    a, b, carry_in = x[:32], x[32:64], x[64]
    sums = [number(a[k : k + 4]) + number(b[k : k + 4]) for k in range(0, 32, 4)]
    groups = nibble_groups(n, "add", [(None, sums)])
    carry = carries(n, "carry", groups, carry_in)
    nets = [n.net(f"sum[{i}]") for i in range(32)]
    for k in range(8):
        value = groups.sums[k] + (carry[k - 1] if k else carry_in)
        sum_bits(n, f"bits[{k}]", value, carry[k], 1, nets[4 * k : 4 * k + 4])
    return [*(lin(net) for net in nets), carry[-1]]


ADDER = Bench(65, _adder)


def bits(word: int, width: int = 32) -> list[int]:
    return [word >> i & 1 for i in range(width)]


@given(words, words, st.integers(0, 1))
@settings(max_examples=60, deadline=None)
def test_the_adder_adds(a: int, b: int, carry: int) -> None:
    assert ADDER(*bits(a), *bits(b), carry) == bits(a + b + carry, 33)


def _multiplier(n: Netlist, x: list[Lin]) -> list[Lin]:
    low, high, signed_a, signed_b, both, only_a = x[65:]
    control = MultiplyControl(low, high, signed_a, signed_b, both, only_a)
    return multiply(n, x[:32], x[32:65], control)


MULTIPLIER = Bench(71, _multiplier)


def signed(word: int) -> int:
    return word - 2**32 if word >> 31 else word


@pytest.mark.parametrize("kind", ["low", "high", "high_signed", "high_signed_unsigned"])
@given(a=words, b=words)
@settings(max_examples=25, deadline=None)
def test_the_multiplier_multiplies(kind: str, a: int, b: int) -> None:
    control, product = {
        "low": ((1, 0, 0, 0, 0, 0), a * b),
        "high": ((0, 1, 0, 0, 0, 0), (a * b) >> 32),
        "high_signed": ((0, 1, 1, 1, 1, 0), (signed(a) * signed(b)) >> 32),
        "high_signed_unsigned": ((0, 1, 1, 0, 0, 1), (signed(a) * b) >> 32),
    }[kind]
    assert MULTIPLIER(*bits(a), *bits(b, 33), *control) == bits(product)


def test_multiplying_by_the_33rd_bit_keeps_the_other_factor() -> None:
    for a in CORNERS:
        assert MULTIPLIER(*bits(a), *bits(1 << 32, 33), 0, 1, 1, 0, 0, 1) == bits(a)
