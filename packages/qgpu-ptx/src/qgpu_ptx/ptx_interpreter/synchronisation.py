"""CTA barriers and fences (PTX ISA, bar, barrier, membar, fence)."""

from __future__ import annotations

from collections.abc import Callable

from qgpu_ptx.diagnostics import ExecutionError
from qgpu_ptx.ptx_interpreter.instruction_table import Executor, Modifiers, instruction
from qgpu_ptx.ptx_interpreter.machine import WARP_SIZE, Barrier, Lane, LaneState, Warp
from qgpu_ptx.ptx_interpreter.operands import OperandDecoder, Reader
from qgpu_ptx.ptx_interpreter.scalar_types import PRED, U32

_REF = "Parallel Synchronization and Communication Instructions: "
BARRIERS = 16
Finish = Callable[[Lane, "list[int]"], None]


def _barrier(lane: Lane, number: int, count: int | None) -> Barrier:
    if number >= BARRIERS:
        raise ExecutionError(
            f"barrier {number} does not exist: a CTA has {BARRIERS}", thread=lane.name
        )
    if count is not None and (count == 0 or count % WARP_SIZE):
        raise ExecutionError(
            f"the barrier's thread count {count} is not a multiple of {WARP_SIZE}",
            thread=lane.name,
        )
    barrier = lane.cta.barriers.setdefault(number, Barrier(count=count))
    if barrier.count != count:
        raise ExecutionError(
            f"barrier {number} is used with thread counts {barrier.count} and {count} at once",
            thread=lane.name,
        )
    return barrier


def _wait(
    number: Reader, count: Reader | None, predicate: Reader, finish: Finish | None
) -> Executor:
    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            barrier = _barrier(lane, number(lane), count(lane) if count else None)
            barrier.waiting.append((lane, predicate(lane), finish))
            lane.state = LaneState.AT_BARRIER
        warp.cta.check_barriers()

    return execute


def _always(lane: Lane) -> int:
    return 1


@instruction("bar", "cta?=cta op=sync", reference=_REF + "bar.sync", control=True, operands="a [b]")
@instruction(
    "barrier", "cta?=cta op=sync aligned?=aligned", reference=_REF + "barrier.sync", control=True,
    operands="a [b]",
)  # fmt: skip
def bar_sync(d: OperandDecoder, m: Modifiers) -> Executor:
    """Waits for all threads of the CTA that have not exited, or for b threads."""
    d.expect(1, 2)
    count = d.reader(d.operands[1], U32) if len(d.operands) > 1 else None
    return _wait(d.reader(d.operands[0], U32), count, _always, None)


@instruction(
    "bar", "cta?=cta op=arrive", reference=_REF + "bar.arrive", control=True, operands="a b"
)
@instruction(
    "barrier", "cta?=cta op=arrive aligned?=aligned", reference=_REF + "barrier.arrive",
    control=True, operands="a b",
)  # fmt: skip
def bar_arrive(d: OperandDecoder, m: Modifiers) -> Executor:
    """Counts as arrived without waiting."""
    d.expect(2)
    number, count = (d.reader(operand, U32) for operand in d.operands)

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            _barrier(lane, number(lane), count(lane)).arrivals += 1
        warp.cta.check_barriers()

    return execute


_RED = "cta?=cta op=red"
_ALIGNED = "aligned?=aligned"


@instruction(
    "bar", f"{_RED} how=popc type=u32", reference=_REF + "bar.red", control=True,
    operands="u32 <- a [b] p",
)  # fmt: skip
@instruction(
    "bar", f"{_RED} how=and|or type=pred", reference=_REF + "bar.red", control=True,
    operands="p <- a [b] p",
)  # fmt: skip
@instruction(
    "barrier", f"{_RED} how=popc {_ALIGNED} type=u32", reference=_REF + "barrier.red",
    control=True, operands="u32 <- a [b] p",
)  # fmt: skip
@instruction(
    "barrier", f"{_RED} how=and|or {_ALIGNED} type=pred", reference=_REF + "barrier.red",
    control=True, operands="p <- a [b] p",
)  # fmt: skip
def bar_red(d: OperandDecoder, m: Modifiers) -> Executor:
    """A barrier that also counts, or combines, a predicate of all threads."""
    d.expect(3, 4)
    write = d.writer(d.operands[0], U32 if m["how"] == "popc" else PRED)
    number = d.reader(d.operands[1], U32)
    count = d.reader(d.operands[2], U32) if len(d.operands) == 4 else None
    predicate = d.reader(d.operands[-1], PRED)
    combine: Callable[[list[int]], int] = {
        "popc": sum,
        "and": lambda values: int(all(values)),
        "or": lambda values: int(any(values)),
    }[m["how"]]
    return _wait(number, count, predicate, lambda lane, values: write(lane, combine(values)))


@instruction("membar", "level=cta|gl|sys", reference=_REF + "membar")
@instruction(
    "fence", "order?=sc|acq_rel|acquire|release scope=cta|cluster|gpu|sys", reference=_REF + "fence"
)
def fence(d: OperandDecoder, m: Modifiers) -> Executor:
    """Does nothing: memory is sequentially consistent."""
    d.expect(0)
    return lambda warp, lanes: None


@instruction("nanosleep", "type=u32", reference="Miscellaneous Instructions: nanosleep")
def nanosleep(d: OperandDecoder, m: Modifiers) -> Executor:
    """Does nothing: sleeping has no result."""
    d.expect(1)
    d.reader(d.operands[0], U32)
    return lambda warp, lanes: None
