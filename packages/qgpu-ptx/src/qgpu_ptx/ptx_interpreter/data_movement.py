"""Moves and conversions (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

from qgpu_ptx.ptx_interpreter.instruction_table import (
    ALL_INTEGERS,
    Executor,
    Modifiers,
    instruction,
    lane_instruction,
    operand_type,
)
from qgpu_ptx.ptx_interpreter.machine import Lane, Warp
from qgpu_ptx.ptx_interpreter.memory import from_generic, space_of, to_generic
from qgpu_ptx.ptx_interpreter.operands import OperandDecoder
from qgpu_ptx.ptx_interpreter.scalar_types import PRED, SCALAR_TYPES, U32, U64

_REF = "Data Movement and Conversion Instructions: "
_CONVERTIBLE = "u8|u16|u32|u64|s8|s16|s32|s64"


@instruction("mov", f"type=pred|{ALL_INTEGERS}", reference=_REF + "mov", operands="T <- T")
def mov(d: OperandDecoder, m: Modifiers) -> Executor:
    """Copies a register, constant or address; packs or unpacks a vector, first element lowest."""
    type_ = operand_type("T", m)
    d.expect(2)
    targets, sources = d.elements(d.operands[0]), d.elements(d.operands[1])
    if len(targets) > 1 and len(sources) > 1:
        raise d.error("packs or unpacks one vector, not both")
    count = max(len(targets), len(sources))
    if count == 1:
        write, read = d.writer(targets[0], type_), d.reader(sources[0], type_)

        def copy(warp: Warp, lanes: list[Lane]) -> None:
            for lane in lanes:
                write(lane, read(lane))

        return copy
    part = SCALAR_TYPES.get(f"b{type_.bits // count}")
    if part is None or count not in (2, 4):
        raise d.error(f"a .{type_.name} cannot hold {count} elements")
    if len(sources) > 1:
        readers = [d.reader(source, part) for source in sources]
        write = d.writer(targets[0], type_)

        def pack(warp: Warp, lanes: list[Lane]) -> None:
            for lane in lanes:
                write(lane, sum(r(lane) << part.bits * i for i, r in enumerate(readers)))

        return pack
    read = d.reader(sources[0], type_)
    writers = [d.writer(target, part) for target in targets]

    def unpack(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            value = read(lane)
            for index, writer in enumerate(writers):
                writer(lane, value >> part.bits * index)

    return unpack


@instruction(
    "cvt", f"sat?=sat to={_CONVERTIBLE} from={_CONVERTIBLE}", reference=_REF + "cvt",
    operands="to <- from",
)  # fmt: skip
def cvt(d: OperandDecoder, m: Modifiers) -> Executor:
    """Converts between integers: cut or extended by the source's sign; `.sat` clamps."""
    to, from_ = SCALAR_TYPES[m["to"]], SCALAR_TYPES[m["from"]]
    d.expect(2)
    write = d.writer(d.operands[0], to, relaxed=True)
    read = d.reader(d.operands[1], from_, relaxed=True)
    low, high = to.range if "sat" in m else (-(1 << 64), 1 << 64)

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            write(lane, min(max(read(lane), low), high))

    return execute


@lane_instruction(
    "cvt",
    "op=pack sat=sat to=u8|s8 from=s32 rest=b32",
    "b32 <- s32 s32 b32",
    reference=_REF + "cvt.pack",
)
def cvt_pack_bytes(m: Modifiers, a: int, b: int, c: int) -> int:
    """Clamps a and b to bytes and puts them below the low half of c."""
    low, high = SCALAR_TYPES[m["to"]].range
    first, second = (min(max(value, low), high) & 0xFF for value in (b, a))
    return c << 16 | second << 8 | first


@instruction(
    "cvta",
    "to?=to space=global|shared|const|local|param type=u32|u64",
    reference=_REF + "cvta",
    operands="T <- T",
)
def cvta(d: OperandDecoder, m: Modifiers) -> Executor:
    """State space address to generic address; with `.to`, the reverse."""
    type_ = operand_type("T", m)
    d.expect(2)
    write, read = d.writer(d.operands[0], type_), d.reader(d.operands[1], type_)
    space = m["space"]
    convert = from_generic if "to" in m else to_generic

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            write(lane, convert(space, read(lane)))

    return execute


@instruction(
    "isspacep",
    "space=global|shared|const|local|param",
    reference=_REF + "isspacep",
    operands="p <- address",
)
def isspacep(d: OperandDecoder, m: Modifiers) -> Executor:
    """Whether a generic address lies in a state space."""
    d.expect(2)
    write = d.writer(d.operands[0], PRED)
    type_ = U64 if d.program.module.address_size == 64 else U32
    read = d.reader(d.operands[1], type_)
    space = m["space"]

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            write(lane, int(space_of(read(lane)) == space))

    return execute
