"""Loads, stores and atomics (PTX ISA, ld, st, atom, red).

Memory is sequentially consistent here: orderings, scopes and cache hints change nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from qgpu_ptx.ptx_interpreter.instruction_table import (
    ALL_INTEGERS,
    Executor,
    Modifiers,
    instruction,
    operand_type,
)
from qgpu_ptx.ptx_interpreter.machine import Lane, Warp, Writer
from qgpu_ptx.ptx_interpreter.memory import locate
from qgpu_ptx.ptx_interpreter.operands import OperandDecoder, Reader
from qgpu_ptx.ptx_interpreter.scalar_types import ScalarType

# When lanes of a warp store to one address in one instruction, CUDA promises only that one of the
# values is kept. This package keeps the lowest active lane's, everywhere, so that results repeat.
LOWEST_LANE_WINS = True

_REF = "Data Movement and Conversion Instructions: "
_SCOPE = "scope?=cta|cluster|gpu|sys"
_HINTS = (
    "evict?=L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate "
    "l2?=L2::evict_first|L2::evict_last|L2::evict_normal "
    "prefetch?=L2::64B|L2::128B|L2::256B"
)
_TYPES = f"vec?=v2|v4 type=b8|u8|s8|{ALL_INTEGERS}"
_LOAD_SPACES = "space?=global|const|local|param|param::entry|param::func|shared|shared::cta"
_STORE_SPACES = "space?=global|local|param|param::func|shared|shared::cta"
_ATOMIC_SPACES = "space?=global|shared|shared::cta"


def _space(m: Modifiers, symbol_space: str | None) -> str:
    named = m.get("space", "").split("::")[0]
    return named or symbol_space or "generic"


def _vector_elements(d: OperandDecoder, m: Modifiers, position: int) -> list[int]:
    count = int(m.get("vec", "v1")[1:])
    given = len(d.elements(d.operands[position]))
    if given != count:
        raise d.error(f"moves {count} values, {given} given", d.operands[position])
    return list(range(count))


@instruction(
    "ld", f"order?=weak|volatile|relaxed|acquire {_SCOPE} {_LOAD_SPACES} "
    f"cache?=ca|cg|cs|lu|cv nc?=nc {_HINTS} {_TYPES}",
    reference=_REF + "ld", operands="T <- [address]",
)  # fmt: skip
@instruction("ldu", f"space?=global {_TYPES}", reference=_REF + "ldu", operands="T <- [address]")
def ld(d: OperandDecoder, m: Modifiers) -> Executor:
    """Loads values; a register wider than the type gets the sign or zeros."""
    type_ = operand_type("T", m)
    d.expect(2)
    elements = d.elements(d.operands[0])
    writers = [d.writer(elements[i], type_, relaxed=True) for i in _vector_elements(d, m, 0)]
    address, symbol_space = d.address(d.operands[1])
    space, size = _space(m, symbol_space), type_.bytes
    total = size * len(writers)

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            data, offset = locate(lane, space, address(lane), total)
            for write in writers:
                write(lane, int.from_bytes(data[offset : offset + size], "little"))
                offset += size

    return execute


@instruction(
    "st", f"order?=weak|volatile|relaxed|release {_SCOPE} {_STORE_SPACES} "
    f"cache?=wb|cg|cs|wt {_HINTS} {_TYPES}",
    reference=_REF + "st", operands="[address] <- T",
)  # fmt: skip
def st(d: OperandDecoder, m: Modifiers) -> Executor:
    """Stores the low bits of each value; neighbours are not touched."""
    type_ = operand_type("T", m)
    d.expect(2)
    elements = d.elements(d.operands[1])
    readers = [d.reader(elements[i], type_, relaxed=True) for i in _vector_elements(d, m, 1)]
    address, symbol_space = d.address(d.operands[0])
    space, size, mask = _space(m, symbol_space), type_.bytes, type_.mask
    total = size * len(readers)

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        # In reverse, so that the last to write is the lowest lane (LOWEST_LANE_WINS).
        for lane in reversed(lanes):
            data, offset = locate(lane, space, address(lane), total, write=True)
            for read in readers:
                data[offset : offset + size] = (read(lane) & mask).to_bytes(size, "little")
                offset += size

    return execute


def _increment(old: int, limit: int) -> int:
    return 0 if old >= limit else old + 1


def _decrement(old: int, limit: int) -> int:
    return limit if old == 0 or old > limit else old - 1


# Operations on typed integers; `cas` is apart, since it takes two operands.
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda old, b: old + b,
    "min": min,
    "max": max,
    "inc": _increment,
    "dec": _decrement,
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
    "exch": lambda old, b: b,
}
_ATOMIC_SHAPES = (
    ("add", "u32|s32|u64|s64"),
    ("min|max", "u32|s32|u64|s64"),
    ("inc|dec", "u32"),
    ("and|or|xor", "b32|b64"),
)
_EXCHANGES = (("exch", "b32|b64"), ("cas", "b16|b32|b64"))
_ORDER = "order?=relaxed|acquire|release|acq_rel"


def _atomic(
    d: OperandDecoder, m: Modifiers, write: Writer | None, address: Reader, space: str
) -> Executor:
    type_: ScalarType = operand_type("T", m)
    values = [d.reader(operand, type_) for operand in d.operands[1 + (write is not None) :]]
    operation = _OPERATIONS.get(m["op"])

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        # Lanes that meet at one address take their turn in lane order.
        for lane in lanes:
            data, offset = locate(lane, space, address(lane), type_.bytes, write=True)
            old = type_.value(int.from_bytes(data[offset : offset + type_.bytes], "little"))
            if operation is not None:
                new = operation(old, values[0](lane))
            else:
                new = values[1](lane) if old == values[0](lane) else old
            data[offset : offset + type_.bytes] = (new & type_.mask).to_bytes(type_.bytes, "little")
            if write is not None:
                write(lane, old)

    return execute


def atom(d: OperandDecoder, m: Modifiers) -> Executor:
    """Atomic read, modify, write; gives the old value."""
    d.expect(4 if m["op"] == "cas" else 3)
    write = d.writer(d.operands[0], operand_type("T", m))
    address, symbol_space = d.address(d.operands[1])
    return _atomic(d, m, write, address, _space(m, symbol_space))


def red(d: OperandDecoder, m: Modifiers) -> Executor:
    """Atomic update without a result."""
    d.expect(2)
    address, symbol_space = d.address(d.operands[0])
    return _atomic(d, m, None, address, _space(m, symbol_space))


def _register_atomics() -> None:
    before = f"{_ORDER} {_SCOPE} {_ATOMIC_SPACES}"
    for op, types in (*_ATOMIC_SHAPES, *_EXCHANGES):
        instruction(
            "atom",
            f"{before} op={op} type={types}",
            reference="Parallel Synchronization and Communication Instructions: atom",
            operands="T <- [address] T",
        )(atom)
    for op, types in _ATOMIC_SHAPES:
        instruction(
            "red",
            f"{before} op={op} type={types}",
            reference="Parallel Synchronization and Communication Instructions: red",
            operands="[address] T",
        )(red)


_register_atomics()


@instruction(
    "prefetch", "space?=global|local level=L1|L2", reference=_REF + "prefetch", operands="[address]"
)
@instruction("prefetchu", "level=L1", reference=_REF + "prefetchu", operands="[address]")
def prefetch(d: OperandDecoder, m: Modifiers) -> Executor:
    """Does nothing: there is no cache."""
    d.expect(1)
    d.address(d.operands[0])
    return lambda warp, lanes: None
