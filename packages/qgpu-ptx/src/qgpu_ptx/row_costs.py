"""How many tokens the machine will likely need to send a register's row back."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa import formats
from qgpu_isa.machine_config import MachineConfig

from qgpu_ptx.ir import LOADS, Function, Imm, Op, Reg, Special, Value
from qgpu_ptx.simplify_op import COMPARES

TOP = (1 << 32) - 1
SMALL = 1 << 11
TYPICAL = (1 << 16) - 1


@dataclass(frozen=True)
class Row:
    """What is known of a register's row: the largest value, and its shape over the lanes.

    A uniform row is one value; a linear one counts up by `stride` from lane to lane.
    """

    largest: int = TOP
    stride: int | None = None

    @property
    def uniform(self) -> bool:
        return self.stride == 0


UNKNOWN = Row()


def estimate_rows(function: Function, threads: int) -> dict[Reg, Row]:
    """A row for every register; those set more than once or by loads are unknown."""
    counts: dict[object, int] = {}
    for op in function.ops():
        counts[op.dst] = counts.get(op.dst, 0) + 1
    rows: dict[Reg, Row] = {}
    for _ in range(2):
        for op in function.ops():
            if isinstance(op.dst, Reg) and op.dst not in rows and counts[op.dst] == 1:
                row = _row(op, rows, threads)
                if row != UNKNOWN:
                    rows[op.dst] = row
    return rows


def short_row(row: Row) -> bool:
    """Whether one token is enough for a row."""
    if row.largest <= 1:
        return True
    return row.stride in (0, 1, 4) and row.largest < SMALL


def row_tokens(row: Row, config: MachineConfig) -> int:
    """Tokens of a record with this row."""
    if short_row(row):
        return 1
    if row.uniform:
        return formats.word_record_tokens(config)
    # Most words that kernels compute are small numbers.
    width = formats.width_of(min(row.largest, TYPICAL), signed=False)
    return formats.row_tokens(config, width)


def _value(value: Value, rows: dict[Reg, Row], threads: int) -> Row:
    if isinstance(value, Imm):
        return Row(value.value, 0)
    if value is Special.TID:
        return Row(threads - 1, 1)
    if value is Special.CTAID:
        return Row(SMALL - 1, 0)
    if value is Special.PLACE:
        # A word that is the same for all lanes was loaded from one address.
        return Row(stride=0)
    assert isinstance(value, Reg)
    return rows.get(value, UNKNOWN)


def _row(op: Op, rows: dict[Reg, Row], threads: int) -> Row:
    if op.name in COMPARES or op.name == "setp":
        return Row(1)
    if op.is_memory:
        uniform = op.address is not None and all(
            _value(v, rows, threads).uniform for v in (op.address.a, op.address.b)
        )
        return Row(TOP, 0) if uniform and op.name in LOADS else UNKNOWN
    if op.name == "ballot":
        return Row(TOP, 0)
    a, b = _value(op.a, rows, threads), _value(op.b, rows, threads)
    match op.name:
        case "mov":
            return a
        case "popc" | "clz" | "ctz":
            return Row(32, 0 if a.uniform else None)
        case "extb" | "exth":
            largest = 0xFF if op.name == "extb" else 0xFFFF
            return Row(largest, 0 if a.uniform and b.uniform else None)
        case "add":
            return _sum(a, b)
        case "sub" if b.uniform:
            return Row(TOP, a.stride)
        case "shl" if isinstance(op.b, Imm):
            stride = None if a.stride is None else a.stride << op.b.value
            return Row(min(TOP, a.largest << op.b.value), stride)
        case "shr" if isinstance(op.b, Imm):
            return Row(a.largest >> op.b.value, 0 if a.uniform else None)
        case "and":
            largest = min(a.largest, b.largest)
            return Row(largest, 0 if a.uniform and b.uniform else None)
        case "minu":
            return Row(min(a.largest, b.largest), 0 if a.uniform and b.uniform else None)
        case "sel":
            return Row(max(a.largest, b.largest))
        case "mullo":
            stride = 0 if a.uniform and b.uniform else None
            if a.stride is not None and isinstance(op.b, Imm):
                stride = a.stride * op.b.value
            return Row(min(TOP, a.largest * b.largest), stride)
        case "or" | "xor":
            bits = max(a.largest, b.largest).bit_length()
            return Row((1 << bits) - 1, 0 if a.uniform and b.uniform else None)
    return Row(TOP, 0) if a.uniform and b.uniform else UNKNOWN


def _sum(a: Row, b: Row) -> Row:
    total = a.largest + b.largest
    stride = None
    if a.stride is not None and b.stride is not None:
        stride = a.stride + b.stride
    return Row(total if total <= TOP else TOP, stride)
