"""Which free number suits a register best: what stands in a register already has its price.

A record holds the whole row, so lanes that do not run keep what an earlier value left there: a
small value is a short record only where small values stood before. And where the new row is the
old one, in all lanes or in a group of them, nothing is sent for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qgpu_isa.machine_config import NIBBLE_BITS, WORD_BITS

from qgpu_ptx.ir import ZERO, Op, Pred, Reg, Special, Value
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
        self._lasting: dict[Item, bool] = {}

    def badness(self, item: Item, number: int, held: Sequence[Item]) -> tuple[int, int]:
        """The lower, the better the number, which `held` have too, is for an item."""
        if isinstance(item, Pred):
            return 0, number
        return self._badness(item, held), number

    def _badness(self, item: Reg, held: Sequence[Item]) -> int:
        width = self._width(item)
        # What no input changes is sent again for each CTA and each round, if nothing is between.
        if width > SHORT and self._lasts(item):
            return AVOIDED + 1 if held else -3
        if any(self._width(other) > SHORT and self._lasts(other) for other in held):
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

    def _lasts(self, item: Item) -> bool:
        """Whether a thread has the same value whenever it computes this."""
        if item not in self._lasting:
            self._lasting[item] = False
            makers = self._makers.get(item, [])
            self._lasting[item] = len(makers) == 1 and self._same(makers[0])
        return self._lasting[item]

    def _same(self, op: Op) -> bool:
        if op.is_memory or op.stays or op.guard is not None:
            return False
        items: list[Value | Pred] = [*op.values(), *([op.pred.pred] if op.pred else [])]
        return all(
            self._lasts(v) if isinstance(v, Reg | Pred) else v not in (Special.CTAID, Special.PLACE)
            for v in items
        )
