"""shfl: each thread writes its word to scratch memory and reads another thread's."""

from __future__ import annotations

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.expansions.arithmetic import check_count
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.expansions.warp_scratch import WarpExchange
from qgpu_ptx.instruction_context import InstructionContext
from qgpu_ptx.ir import Value
from qgpu_ptx.ir_builder import Condition
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES
from qgpu_ptx.thread_values import lane, thread

B32 = SCALAR_TYPES["b32"]


@expansion("shfl")
def shfl(c: InstructionContext, m: Modifiers) -> None:
    """Moves a register between lanes; p tells whether the source lane was in range."""
    check_count(c, 5 if "sync" in m else 4)
    target = c.operands[0]
    first, second = (
        (target.first, target.second) if isinstance(target, ast.Pair) else (target, None)
    )
    value, step, clamp = (c.word(position, B32) for position in (1, 2, 3))
    source, in_range = source_lane(c, m["mode"], step, clamp)
    b = c.b
    if in_range is not True:
        source = b.select(in_range, source, lane(c.kernel))
    exchange = WarpExchange(c.kernel)
    # Lanes of one pass run in step, so only several passes need areas kept apart.
    kind = "lanes" if exchange.single_pass else "exchange"
    area = f"{kind}{c.kernel.next_exchange()}"
    words = c.kernel.shape.threads
    base = exchange.area(area, words)
    b.store(b.add(b.shl(thread(c.kernel), 2), base), value, space=area)
    exchange.barrier()
    number = b.add(source, exchange.group_start())
    c.write(first, B32, (b.load(b.add(b.shl(number, 2), base), space=area),))
    if second is not None:
        c.write_condition(second, in_range)


def source_lane(
    c: InstructionContext, mode: str, step: Value, clamp: Value
) -> tuple[Value, Condition]:
    """The lane that is read and whether it is in range (the pseudocode of `shfl`)."""
    b = c.b
    mine = lane(c.kernel)
    segment = b.and_(b.shr(clamp, 8), 31)
    step, clamp = b.and_(step, 31), b.and_(clamp, 31)
    low = b.and_(mine, segment)
    high = b.or_(low, b.and_(clamp, b.not_(segment)))
    match mode:
        case "up":
            source = b.sub(mine, step)
            return source, b.compare("setges", source, high)
        case "down":
            source = b.add(mine, step)
            return source, b.compare("setges", high, source)
        case "bfly":
            source = b.xor(mine, step)
        case _:
            source = b.or_(low, b.and_(step, b.not_(segment)))
    return source, b.compare("setges", high, source)
