"""Which free number suits a register best: what stands in a register already has its price.

A record holds the whole row, so lanes that do not run keep what an earlier value left there: a
small value is a short record only where small values stood before. And where the new row is the
old one, in all lanes or in a group of them, nothing is sent for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qgpu_isa.machine_config import NIBBLE_BITS, WORD_BITS

from qgpu_ptx.ir import ZERO, Op, Pred, Reg, Special
from qgpu_ptx.row_costs import Row, short_row
from qgpu_ptx.virtual_blocks import Item, VirtualBlock

FLAG, SHORT = 0, 1
"""Widths of rows of 0 and 1, and of others that one token holds."""
UNUSED = 0
"""How little a register suits that nothing has been in yet, if nothing better is known."""
AVOIDED = 20


class RegisterChoice:
    """Knows the operations of all blocks, and what rows registers hold."""

    def __init__(self, blocks: Sequence[VirtualBlock], rows: Mapping[Reg, Row]) -> None:
        self._rows = rows
        self._makers: dict[Item, list[Op]] = {}
        self._near: dict[Item, set[Item]] = {}
        equal: dict[object, list[Item]] = {}
        for block in blocks:
            for placed in block.slots.values():
                op = placed.op
                if op.name == "st" and isinstance(op.b, Reg):
                    # As if it were loaded again.
                    loaded = "ld", ZERO, ZERO, op.pred, op.address, op.space
                    equal.setdefault(loaded, []).append(op.b)
                if op.dst is None:
                    continue
                self._makers.setdefault(op.dst, []).append(op)
                if not placed.live:
                    continue
                key = op.name, op.a, op.b, op.pred, op.address, op.space
                equal.setdefault(key, []).append(op.dst)
                for use in () if op.is_memory else op.uses():
                    if use not in placed.forwards:
                        self._near.setdefault(op.dst, set()).add(use)
                        self._near.setdefault(use, set()).add(op.dst)
        self._twins = {
            item: set(items) - {item} for items in equal.values() if len(items) > 1
            for item in items
        }  # fmt: skip
        self._lasting = _lasting(self._makers)

    def badness(self, item: Item, number: int, held: Sequence[Item]) -> tuple[int, int]:
        """The lower, the better the number, which `held` have too, is for an item."""
        if isinstance(item, Pred):
            return 0, number
        return self._badness(item, held), number

    def _badness(self, item: Reg, held: Sequence[Item]) -> int:
        width = self._width(item)
        # What no input changes is sent again for each CTA and each round, if nothing is between.
        if width > SHORT and item in self._lasting:
            return AVOIDED + 1 if held else -3
        if any(self._width(other) > SHORT and other in self._lasting for other in held):
            return AVOIDED
        if not self._twins.get(item, set()).isdisjoint(held):
            return -2
        if width > SHORT and not self._near.get(item, set()).isdisjoint(held):
            return -1
        return max((abs(width - self._width(other)) for other in held), default=UNUSED)

    def _width(self, item: Item) -> int:
        """Nibbles of its words, or `FLAG` or `SHORT`."""
        row = self._rows.get(item) if isinstance(item, Reg) else None
        if row is None:
            return WORD_BITS // NIBBLE_BITS
        if row.largest <= 1:
            return FLAG
        return SHORT if short_row(row) else -(-row.largest.bit_length() // NIBBLE_BITS)


def _lasting(makers: Mapping[Item, Sequence[Op]]) -> set[Item]:
    """Items of which a thread has the same value whenever it computes them."""
    found: set[Item] = set()
    waiting = {item: ops[0] for item, ops in makers.items() if len(ops) == 1 and _may_last(ops[0])}
    more = True
    while more:
        new = {item for item, op in waiting.items() if found.issuperset(_inputs(op))}
        more = bool(new)
        found |= new
        waiting = {item: op for item, op in waiting.items() if item not in new}
    return found


def _may_last(op: Op) -> bool:
    changing = {Special.CTAID, Special.PLACE}.intersection(op.values())
    return not (op.is_memory or op.stays or op.guard is not None or changing)


def _inputs(op: Op) -> list[Item]:
    inputs: list[Item] = [value for value in op.values() if isinstance(value, Reg | Pred)]
    return [*inputs, op.pred.pred] if op.pred else inputs
