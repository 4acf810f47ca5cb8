"""The whole machine as a netlist: the units in the order in which a token passes them."""

from __future__ import annotations

from qgpu_isa import MachineConfig, Slot

from qgpu_circuit.gates import any_of
from qgpu_circuit.model_shape import ModelShape
from qgpu_circuit.netlist import Lin, Urgency
from qgpu_circuit.prune import prune
from qgpu_circuit.signals import Machine, from_sign
from qgpu_circuit.units.alu import AluControl, build_alu
from qgpu_circuit.units.branch import build_branch
from qgpu_circuit.units.emit import build_emit
from qgpu_circuit.units.front_end import CTA_BITS, build_front_end
from qgpu_circuit.units.live_out import build_live_out
from qgpu_circuit.units.load_store import build_load_store
from qgpu_circuit.units.multiplier import build_multiplier
from qgpu_circuit.units.next_block import build_next_block
from qgpu_circuit.units.operands import (
    OperandSources,
    Word,
    decode_ops,
    select_operand,
    select_predicate,
)
from qgpu_circuit.units.pass_scheduler import build_pass_scheduler
from qgpu_circuit.units.program_rom import read_rom
from qgpu_circuit.units.receive import build_receive
from qgpu_circuit.units.register_file import (
    build_predicate_file,
    build_register_file,
)

OPERAND_FIELDS = ("imm", "op", "a_sel", "b_sel", "a_reg", "b_reg", "pred", "pred_negate")


def machine_to_netlist(config: MachineConfig, shape: ModelShape) -> Machine:
    """Builds the circuit of a machine.

    Returns:
        the machine with its netlist, the embedding's values, and the names of the memory heads.
    """
    m = Machine(config, shape)
    n = m.netlist
    with n.scope("front"):
        front = build_front_end(m)
        ctaid = m.memory("ctaid", front.word_window(m, CTA_BITS), write_enable=front.cta_done)
    with n.scope("receive"):
        write = build_receive(m, front)
        registers = build_register_file(m, front, write)
        predicates = build_predicate_file(m, front, write)
    with n.scope("passes"), n.urgent(Urgency.EARLY):
        following = build_pass_scheduler(m, front)

    results: dict[Slot, list[Word]] = {}
    sources = OperandSources(front, [from_sign(x) for x in ctaid], registers, results)
    preds: dict[Slot, list[Lin]] = {}
    selects: dict[Slot, Lin] = {}
    flags: dict[Slot, list[Lin]] = {}
    mask: list[Lin] = []
    faults: tuple[Lin, Lin] = (Lin(), Lin())
    for slot in Slot:
        # A1 has time while X multiplies, and fewer dimensions are in use when X is nearly done.
        urgency = Urgency.LAST if slot is Slot.A1 else Urgency.LATE
        with n.scope(slot.name), n.urgent(urgency):
            row = read_rom(m, front, slot, OPERAND_FIELDS, "code")
            preds[slot] = select_predicate(m, predicates, slot.name, row, "pred")
            selects[slot] = Lin()
            if slot is Slot.MEM:
                ops = decode_ops(m, slot, row)
                data = select_operand(m, sources, slot, row, "b")
                memory = build_load_store(m, front, ops, results[Slot.A0], data, preds[slot])
                results[slot], mask = memory.words, memory.mask
                faults = (memory.out_of_range, memory.misaligned)
                continue
            a = select_operand(m, sources, slot, row, "a")
            b = select_operand(m, sources, slot, row, "b")
            if slot is Slot.X:
                ops = decode_ops(m, slot, row)
                results[slot] = build_multiplier(m, ops, a, b)
                continue
            control = AluControl(decode_ops(m, slot, row))
            alu = build_alu(m, control, a, b, preds[slot], flags.get(Slot.A1), mask)
            results[slot], flags[slot] = alu.words, alu.flags
            selects[slot] = control.where(lambda u: u.flag == "pred")
    with n.scope("branch"), n.urgent(Urgency.LAST):
        branch = build_branch(
            m, front, predicates, mask, (flags[Slot.A1], flags[Slot.A2]), following.pass_
        )
    with n.scope("live_out"):
        masks = {slot: _write_mask(m, slot, mask, preds[slot], selects[slot]) for slot in Slot}
        live = build_live_out(m, front, write, registers, predicates, results, masks)
    with n.scope("next_block"):
        block = build_next_block(m, front, branch.counters, following)
    with n.scope("emit"):
        build_emit(m, front, live, following, block, (*faults, branch.traps))
    prune(n)
    return m


def _write_mask(
    m: Machine, slot: Slot, mask: list[Lin], pred: list[Lin], selects: Lin
) -> list[Lin]:
    """Lanes whose destination a slot writes: its predicate guards it unless it selects by it."""
    return [
        any_of(
            m.netlist,
            f"write_mask/{slot.name}[{i}]",
            [mask[i] + pred[i] - 1, mask[i] + selects - 1 - pred[i]],
        )
        for i in range(m.config.lanes)
    ]
