"""The arithmetic-logic unit of slots A0, A1 and A2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qgpu_isa import INSTRUCTIONS
from qgpu_isa.machine_config import WORD_BITS
from qgpu_isa.units import Alu

from qgpu_circuit.arithmetic.carry_lookahead import (
    NIBBLE,
    carries,
    nibble_groups,
    sum_bits,
)
from qgpu_circuit.gates import relu, table_neurons
from qgpu_circuit.netlist import Lin, NetId, Neuron, lin, number, total
from qgpu_circuit.signals import Machine
from qgpu_circuit.units.alu_bits import count_and_pick
from qgpu_circuit.units.operands import Word

GROUPS = WORD_BITS // NIBBLE
ONE = Lin.of(1)


@dataclass(frozen=True)
class AluResult:
    """Results of a slot: words, and the flag of a comparison, per lane."""

    words: list[Word]
    flags: list[Lin]


@dataclass(frozen=True)
class AluControl:
    """Which instruction the slot holds: sums over the one-hot of its opcodes."""

    ops: dict[str, Lin]

    def where(self, condition: Callable[[Alu], bool]) -> Lin:
        """1 where the instruction's control row fulfils the condition."""
        rows = ((name, INSTRUCTIONS[name].unit) for name in self.ops)
        return total(self.ops[n] for n, unit in rows if isinstance(unit, Alu) and condition(unit))

    def rows(self) -> list[Alu]:
        """Control rows of all instructions the slot can hold."""
        units = (INSTRUCTIONS[name].unit for name in self.ops)
        return [unit for unit in units if isinstance(unit, Alu)]


def build_alu(
    m: Machine,
    control: AluControl,
    a: list[Word],
    b: list[Word],
    pred: list[Lin] | None,
    forwarded: list[Lin] | None,
    mask: list[Lin],
) -> AluResult:
    """One ALU over all lanes.

    Args:
        mask: lanes that execute the block, as far as it is known before the slot.
        pred: predicate operand per lane, where the slot has instructions that select by it.
        forwarded: flags of slot A1, where the slot can select by them.
    """
    votes = []
    ballot = control.where(lambda u: u.result == "ballot")
    if ballot.terms and pred:
        votes = [holds + on + ballot - 2 for holds, on in zip(pred, mask, strict=True)]
    words, flags = [], []
    for lane in range(m.config.lanes):
        with m.netlist.scope(f"lane{lane}"):
            word, flag = _lane(
                m,
                control,
                a[lane],
                b[lane],
                pred[lane] if pred else None,
                forwarded[lane] if forwarded else None,
                votes,
            )
        words.append(word)
        flags.append(flag)
    return AluResult(words, flags)


def _lane(
    m: Machine,
    control: AluControl,
    a: Word,
    b: Word,
    pred: Lin | None,
    forwarded: Lin | None,
    votes: list[Lin],
) -> tuple[Word, Lin]:
    n = m.netlist
    nets = [n.net(f"result[{i}]") for i in range(WORD_BITS)]
    flag = n.net("flag")
    _logic(m, control, a, b, nets)
    for name, neurons in count_and_pick(control.where, a, b, nets).items():
        n.add(name, neurons)
    if votes:
        n.add("ballot", [Neuron(vote, ONE, ((nets[i], 1.0),)) for i, vote in enumerate(votes)])
    shapes = sorted({(u.shift_a, u.subtract) for u in control.rows() if _adds(u)})
    variants = [
        (
            control.where(lambda u, s=shape: _adds(u) and (u.shift_a, u.subtract) == s),  # type: ignore[misc]
            _nibble_sums(a, b, *shape),
        )
        for shape in shapes
    ]
    groups = nibble_groups(n, "adder", variants)
    subtract = control.where(lambda u: u.subtract)
    carry = carries(n, "adder/carry", groups, subtract)
    enable = control.where(lambda u: u.result == "sum")
    for k in range(GROUPS):
        value = groups.sums[k] + (carry[k - 1] if k else subtract)
        outs = nets[NIBBLE * k : NIBBLE * (k + 1)]
        sum_bits(n, f"adder/bits[{k}]", value, carry[k], enable, outs)
    kinds = {u.flag for u in control.rows()}
    choose_a, choose_b = n.net("choose_a"), n.net("choose_b")
    if kinds & {"eq", "ltu", "lts"}:
        equal = relu(
            n,
            "equal",
            total(p - g for p, g in zip(groups.pass_on, groups.generate, strict=True))
            - (GROUPS - 1),
        )
        parity = 1 - carry[-1] + a[-1] + b[-1]
        _compare(m, control, "flag", equal, carry[-1], parity, [(flag, 1.0), (nets[0], 1.0)], [])
        _compare(
            m, control, "choose", equal, carry[-1], parity, [(choose_a, 1.0)], [(choose_b, 1.0)]
        )
    for kind, selector in (("pred", pred), ("forward", forwarded)):
        if kind in kinds and selector is not None:
            _select(m, control, kind, selector, flag, nets[0], choose_a, choose_b)
    if any(u.result == "choose" for u in control.rows()):
        neurons = []
        for i, net in enumerate(nets):
            neurons.append(Neuron(a[i] + lin(choose_a) - 1, ONE, ((net, 1.0),)))
            neurons.append(Neuron(b[i] + lin(choose_b) - 1, ONE, ((net, 1.0),)))
        n.add("choose", neurons)
    return [lin(net) for net in nets], lin(flag)


def _adds(unit: Alu) -> bool:
    return unit.result == "sum" or unit.subtract


def _nibble_sums(a: Word, b: Word, shift: int, subtract: bool) -> list[Lin]:
    shifted = [a[i - shift] if i >= shift else Lin() for i in range(WORD_BITS)]
    second = [1 - bit for bit in b] if subtract else b
    return [
        number(shifted[k : k + NIBBLE]) + number(second[k : k + NIBBLE])
        for k in range(0, WORD_BITS, NIBBLE)
    ]


def _logic(m: Machine, control: AluControl, a: Word, b: Word, nets: list[NetId]) -> None:
    is_and, is_or, is_xor = (
        control.where(lambda u, r=result: u.result == r)  # type: ignore[misc]
        for result in ("and", "or", "xor")
    )
    # a OR b is a + b - ab, a XOR b is a + b - 2ab.
    sums, products = is_or + is_xor, is_and - is_or - is_xor * 2
    neurons = []
    for i, net in enumerate(nets):
        both = a[i] + b[i]
        neurons.append(Neuron(both, sums, ((net, 1.0),)))
        neurons.append(Neuron(both - 1, products, ((net, 1.0),)))
    m.netlist.add("logic", neurons)


def _compare(
    m: Machine,
    control: AluControl,
    result: str,
    equal: Lin,
    no_borrow: Lin,
    parity: Lin,
    holds: list[tuple[NetId, float]],
    fails: list[tuple[NetId, float]],
) -> None:
    """Adds each comparison's truth to `holds` and its opposite to `fails`, where it is chosen.

    Signed a < b is the parity of (unsigned a < b), sign a and sign b.
    """
    neurons: list[Neuron] = []
    for flag in ("eq", "ltu", "lts"):
        for negate in (False, True):
            enable = control.where(
                lambda u, f=flag, g=negate: u.result == result and u.flag == f and u.negate == g  # type: ignore[misc]
            )
            if not enable.terms:
                continue
            yes, no = (fails, holds) if negate else (holds, fails)
            if flag == "lts":
                odd = _odd_neurons(parity, enable, yes)
                even = _odd_neurons(parity, enable, [(net, -w) for net, w in no])
                neurons += odd + even
                if no:
                    neurons.append(Neuron(enable, ONE, tuple(no)))
                continue
            true_gate = enable + equal - 1 if flag == "eq" else enable - no_borrow
            false_gate = enable - equal if flag == "eq" else enable + no_borrow - 1
            neurons += [Neuron(true_gate, ONE, tuple(yes))] if yes else []
            neurons += [Neuron(false_gate, ONE, tuple(no))] if no else []
    if neurons:
        m.netlist.add(f"compare/{result}", neurons)


def _odd_neurons(value: Lin, enable: Lin, outs: list[tuple[NetId, float]]) -> list[Neuron]:
    """Adds the parity of `value` (0 to 3) to the nets."""
    if not outs:
        return []
    plain = table_neurons(value, 3, [(outs[0][0], lambda v: v & 1)], enable)
    return [
        Neuron(x.gate, x.up, tuple((net, x.outs[0][1] * weight) for net, weight in outs))
        for x in plain
    ]


def _select(
    m: Machine,
    control: AluControl,
    kind: str,
    selector: Lin,
    flag: NetId,
    low: NetId,
    choose_a: NetId,
    choose_b: NetId,
) -> None:
    """Instructions that select by a predicate or a forwarded flag."""
    choose = control.where(lambda u: u.flag == kind and u.result == "choose")
    truth = control.where(lambda u: u.flag == kind and u.result == "flag")
    neurons = [
        Neuron(choose + selector - 1, ONE, ((choose_a, 1.0),)),
        Neuron(choose - selector, ONE, ((choose_b, 1.0),)),
    ]
    if truth.terms:
        neurons.append(Neuron(truth + selector - 1, ONE, ((flag, 1.0), (low, 1.0))))
    m.netlist.add(f"select/{kind}", neurons)
