"""Keeps registers in memory, and predicates in registers, where there are too few."""

from __future__ import annotations

from dataclasses import replace

from qgpu_ptx.ir import (
    ZERO,
    Address,
    BasicBlock,
    Function,
    Imm,
    Op,
    Pred,
    Reg,
    Special,
)
from qgpu_ptx.memory_layout import WORD_BYTES
from qgpu_ptx.passes.rename_locals import rename_terminator, rename_uses

Item = Reg | Pred


def spill(
    function: Function, items: tuple[Item, ...], end: int, threads: int
) -> tuple[Function, int]:
    """The function with `items` kept elsewhere, and the new end of global memory.

    Each spilled register gets a word for every thread from `end` on.
    """
    fresh = function.fresh()
    slots: dict[Reg, int] = {}
    words: dict[Pred, Reg] = {}
    for item in items:
        if isinstance(item, Reg):
            slots[item] = end
            end += WORD_BYTES * threads
        else:
            words[item] = Reg(fresh)
            fresh += 1
    rewriter = _Rewriter(slots, words, fresh)
    blocks = tuple(rewriter.block(block) for block in function.blocks)
    return replace(function, blocks=blocks), end


class _Rewriter:
    def __init__(self, slots: dict[Reg, int], words: dict[Pred, Reg], fresh: int) -> None:
        self._slots = slots
        self._words = words
        self._fresh = fresh

    def _number(self) -> int:
        self._fresh += 1
        return self._fresh - 1

    def block(self, block: BasicBlock) -> BasicBlock:
        """A block with loads before uses and stores behind assignments."""
        ops: list[Op] = []
        for op in block.ops:
            names = self._load(set(op.uses()), op, ops)
            op = rename_uses(op, names)
            if op.dst in self._slots or op.dst in self._words:
                self._store(op, names, ops)
            else:
                ops.append(op)
        end = block.terminator
        if end.cond is not None and end.cond.pred in self._words:
            names = self._load({end.cond.pred}, Op("mov", origin=end.origin), ops)
            end = rename_terminator(end, names)
        return replace(block, ops=tuple(ops), terminator=end)

    def _load(self, uses: set[Item], op: Op, ops: list[Op]) -> dict[Item, Item]:
        names: dict[Item, Item] = {}
        for use in sorted(uses, key=lambda item: item.number):
            if isinstance(use, Reg) and use in self._slots:
                register = Reg(self._number())
                address = self._address(use)
                ops.append(Op("ld", register, address=address, space="spill", origin=op.origin))
                names[use] = register
            elif isinstance(use, Pred) and use in self._words:
                predicate = Pred(self._number())
                ops.append(Op("setne", predicate, self._words[use], ZERO, origin=op.origin))
                names[use] = predicate
        return names

    def _address(self, register: Reg) -> Address:
        return Address("lea2", Special.TID, Imm(self._slots[register]))

    def _store(self, op: Op, names: dict[Item, Item], ops: list[Op]) -> None:
        dst = op.dst
        assert dst is not None
        if isinstance(dst, Pred):
            # The truth as a word: comparisons and setp give 0 or 1.
            ops.append(replace(op, dst=self._words[dst]))
            return
        # A guarded assignment keeps the loaded old value.
        register = names.get(dst, Reg(self._number()))
        assert isinstance(register, Reg)
        ops.append(replace(op, dst=register))
        ops.append(
            Op("st", b=register, address=self._address(dst), space="spill", origin=op.origin)
        )
