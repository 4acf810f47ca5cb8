"""CTA barriers: bar.sync bar.red bar.warp.sync and their `barrier` spellings."""

from __future__ import annotations

from qgpu_isa.machine_config import WARP_THREADS
from qgpu_isa.program import Status

from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.expansions.warp_scratch import WarpExchange
from qgpu_ptx.instruction_context import InstructionContext
from qgpu_ptx.ir import Imm
from qgpu_ptx.ir_builder import Condition
from qgpu_ptx.memory_layout import align_up
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

U32 = SCALAR_TYPES["u32"]


@expansion("bar", "barrier")
def bar(c: InstructionContext, m: Modifiers) -> None:
    """Waits for all threads of the CTA, or of the warp; `.red` combines a predicate."""
    if "warp" in m:
        WarpExchange(c.kernel).barrier()
        return
    if m["op"] == "arrive":
        raise c.unsupported("a barrier to arrive at without waiting is not supported")
    reduces = m["op"] == "red"
    if not 1 + 2 * reduces <= len(c.operands) <= 2 + 2 * reduces:
        raise c.error(f"{len(c.operands)} operands given")
    if len(c.operands) == 2 + 2 * reduces:
        _check_count(c, 1 + reduces)
    if not reduces:
        c.b.barrier(Status.CTA)
        return
    _reduce(c, m, c.condition(c.operands[-1]))


def _check_count(c: InstructionContext, position: int) -> None:
    count = c.word(position, U32)
    everyone = align_up(c.kernel.shape.threads, WARP_THREADS)
    if not isinstance(count, Imm) or count.value < c.kernel.shape.threads:
        raise c.unsupported(
            "a barrier for part of a CTA is not supported",
            f"wait for all {everyone} threads, or leave the count out",
        )


def _reduce(c: InstructionContext, m: Modifiers, condition: Condition) -> None:
    exchange = WarpExchange(c.kernel, cta=True)
    b = c.b
    match m["how"]:
        case "or":
            c.write_condition(c.operands[0], exchange.any(condition))
        case "and":
            c.write_condition(c.operands[0], b.invert(exchange.any(b.invert(condition))))
        case _:
            c.write(c.operands[0], U32, (exchange.count(condition),))
