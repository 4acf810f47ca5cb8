"""Operations across the lanes of a warp (PTX ISA, shfl, vote, match, activemask, redux).

A `.sync` operation waits until every lane of its member mask that has not exited has arrived at
the same instruction with the same mask. A lane outside its own mask is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from qgpu_ptx.diagnostics import WarpOperationError
from qgpu_ptx.ptx_interpreter.instruction_table import (
    Executor,
    Modifiers,
    instruction,
    operand_type,
)
from qgpu_ptx.ptx_interpreter.machine import Lane, LaneState, Warp, WarpWait, Writer
from qgpu_ptx.ptx_interpreter.operands import OperandDecoder, Reader
from qgpu_ptx.ptx_interpreter.scalar_types import B32, PRED, U32

_DATA = "Data Movement and Conversion Instructions: "
_SYNC = "Parallel Synchronization and Communication Instructions: "
Action = Callable[[Warp, "list[Lane]"], None]


def rendezvous(key: object, mask: Reader, action: Action) -> Executor:
    """Executor that runs `action` on all lanes of a mask once they have arrived at `key`."""

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            members = mask(lane)
            if not members >> lane.index & 1:
                raise WarpOperationError(
                    f"lane {lane.index} is not in its own member mask {members:#010x}",
                    thread=lane.name,
                    hint="every thread that executes a .sync operation must be in its mask",
                )
            lane.wait = WarpWait(key, members, action)
            lane.state = LaneState.AT_WARP_OPERATION
        warp.release()

    return execute


def _key(d: OperandDecoder) -> object:
    return id(d.node)


def _shuffle_source(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """Source lane and whether it is in range (the pseudocode of `shfl`)."""
    segment = c >> 8 & 31
    b, clamp = b & 31, c & 31
    low = lane & segment
    high = low | clamp & ~segment
    if mode == "up":
        return (lane - b, True) if lane - b >= high else (lane, False)
    source = {"down": lane + b, "bfly": lane ^ b, "idx": low | b & ~segment}[mode]
    return (source, True) if source <= high else (lane, False)


def _shuffle(d: OperandDecoder, m: Modifiers) -> Action:
    first, second = d.pair(d.operands[0])
    write = d.writer(first, B32)
    write_p = d.writer(second, PRED) if second is not None else None
    a, b, c = (d.reader(operand, B32) for operand in d.operands[1:4])
    mode = m["mode"]

    def action(warp: Warp, lanes: list[Lane]) -> None:
        values = {lane.index: a(lane) for lane in lanes}
        moves = [(lane, *_shuffle_source(mode, lane.index, b(lane), c(lane))) for lane in lanes]
        for lane, source, in_range in moves:
            # The value of a lane that takes no part is undefined in PTX: a lane keeps its own.
            write(lane, values.get(source, values[lane.index]))
            if write_p is not None:
                write_p(lane, int(in_range))

    return action


@instruction(
    "shfl", "sync=sync mode=up|down|bfly|idx type=b32", reference=_DATA + "shfl.sync",
    control=True, operands="T[|p] <- T u32 u32 mask",
)  # fmt: skip
def shfl_sync(d: OperandDecoder, m: Modifiers) -> Executor:
    """Moves a register between lanes; p tells whether the source lane was in range."""
    d.expect(5)
    return rendezvous(_key(d), d.reader(d.operands[4], U32), _shuffle(d, m))


@instruction(
    "shfl",
    "mode=up|down|bfly|idx type=b32",
    reference=_DATA + "shfl",
    operands="T[|p] <- T u32 u32",
)
def shfl(d: OperandDecoder, m: Modifiers) -> Executor:
    """The older form, among the lanes that execute it together."""
    d.expect(4)
    return _shuffle(d, m)


def _vote(d: OperandDecoder, m: Modifiers) -> Action:
    read = d.reader(d.operands[1], PRED)
    mode = m["mode"]
    write = d.writer(d.operands[0], B32 if mode == "ballot" else PRED)

    def action(warp: Warp, lanes: list[Lane]) -> None:
        votes = {lane.index: read(lane) for lane in lanes}
        total = sum(votes.values())
        result = {
            "all": int(total == len(votes)),
            "any": int(total > 0),
            "uni": int(total in (0, len(votes))),
            "ballot": sum(vote << index for index, vote in votes.items()),
        }[mode]
        for lane in lanes:
            write(lane, result)

    return action


@instruction(
    "vote", "sync=sync mode=all|any|uni type=pred", reference=_SYNC + "vote.sync", control=True,
    operands="p <- p mask",
)  # fmt: skip
@instruction(
    "vote", "sync=sync mode=ballot type=b32", reference=_SYNC + "vote.sync", control=True,
    operands="T <- p mask",
)  # fmt: skip
def vote_sync(d: OperandDecoder, m: Modifiers) -> Executor:
    """And, or, equality or ballot of a predicate over a mask of lanes."""
    d.expect(3)
    return rendezvous(_key(d), d.reader(d.operands[2], U32), _vote(d, m))


@instruction("vote", "mode=all|any|uni type=pred", reference=_SYNC + "vote", operands="p <- p")
@instruction("vote", "mode=ballot type=b32", reference=_SYNC + "vote", operands="T <- p")
def vote(d: OperandDecoder, m: Modifiers) -> Executor:
    """The older form, among the lanes that execute it together."""
    d.expect(2)
    return _vote(d, m)


@instruction(
    "match", "mode=any|all sync=sync type=b32|b64", reference=_SYNC + "match.sync", control=True,
    operands="b32[|p] <- T mask",
)  # fmt: skip
def match(d: OperandDecoder, m: Modifiers) -> Executor:
    """Mask of the lanes with the same value (any), or of all if they agree (all)."""
    d.expect(3)
    first, second = d.pair(d.operands[0])
    write = d.writer(first, B32)
    write_p = d.writer(second, PRED) if second is not None else None
    if write_p is not None and m["mode"] == "any":
        raise d.error("match.any has no predicate destination", d.operands[0])
    read = d.reader(d.operands[1], operand_type("T", m))
    any_ = m["mode"] == "any"

    def action(warp: Warp, lanes: list[Lane]) -> None:
        masks: dict[int, int] = {}
        values = [read(lane) for lane in lanes]
        for lane, value in zip(lanes, values, strict=True):
            masks[value] = masks.get(value, 0) | 1 << lane.index
        agreed = len(masks) == 1
        for lane, value in zip(lanes, values, strict=True):
            write(lane, masks[value] if any_ or agreed else 0)
            if write_p is not None:
                write_p(lane, int(agreed))

    return rendezvous(_key(d), d.reader(d.operands[2], U32), action)


@instruction("activemask", "type=b32", reference=_SYNC + "activemask", operands="T <-")
def activemask(d: OperandDecoder, m: Modifiers) -> Executor:
    """Mask of the lanes that execute this together."""
    d.expect(1)
    write: Writer = d.writer(d.operands[0], B32)

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        mask = sum(1 << lane.index for lane in lanes)
        for lane in lanes:
            write(lane, mask)

    return execute


_REDUCE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@instruction(
    "redux", "sync=sync op=add|min|max type=u32|s32", reference=_SYNC + "redux.sync", control=True,
    operands="T <- T mask",
)  # fmt: skip
@instruction(
    "redux", "sync=sync op=and|or|xor type=b32", reference=_SYNC + "redux.sync", control=True,
    operands="T <- T mask",
)  # fmt: skip
def redux(d: OperandDecoder, m: Modifiers) -> Executor:
    """Reduction of a register over a mask of lanes."""
    d.expect(3)
    type_ = operand_type("T", m)
    write, read = d.writer(d.operands[0], type_), d.reader(d.operands[1], type_)
    combine = _REDUCE[m["op"]]

    def action(warp: Warp, lanes: list[Lane]) -> None:
        result = reduce(combine, [read(lane) for lane in lanes])
        for lane in lanes:
            write(lane, result)

    return rendezvous(_key(d), d.reader(d.operands[2], U32), action)


@instruction(
    "bar", "warp=warp sync=sync", reference=_SYNC + "bar.warp.sync", control=True, operands="mask"
)
def bar_warp_sync(d: OperandDecoder, m: Modifiers) -> Executor:
    """Waits for the lanes of a mask, wherever in the code they call it."""
    d.expect(1)
    return rendezvous("bar.warp.sync", d.reader(d.operands[0], U32), lambda warp, lanes: None)
