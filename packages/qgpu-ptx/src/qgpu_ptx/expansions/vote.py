"""vote, match, redux and activemask, through scratch words (see warp_scratch)."""

from __future__ import annotations

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.expansions.arithmetic import check_count
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.expansions.warp_scratch import WarpExchange
from qgpu_ptx.instruction_context import InstructionContext
from qgpu_ptx.ir import WORD, ZERO, Imm, Value
from qgpu_ptx.ir_builder import Condition
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

B32 = SCALAR_TYPES["b32"]
U32 = SCALAR_TYPES["u32"]


@expansion("vote")
def vote(c: InstructionContext, m: Modifiers) -> None:
    """And, or, equality or ballot of a predicate over the lanes that vote together."""
    check_count(c, 3 if "sync" in m else 2)
    condition = c.condition(c.operands[1])
    mask = c.word(2, U32) if "sync" in m else Imm(WORD)
    exchange = WarpExchange(c.kernel)
    b = c.b
    if m["mode"] == "ballot":
        c.write(c.operands[0], B32, (b.and_(exchange.ballot(condition), mask),))
        return

    def any_(p: Condition) -> Condition:
        # Lanes whose mask is one constant form one group; others are told apart by bits.
        if isinstance(mask, Imm):
            return exchange.any(p)
        return b.nonzero(b.and_(exchange.ballot(p), mask))

    match m["mode"]:
        case "any":
            result = any_(condition)
        case "all":
            result = b.invert(any_(b.invert(condition)))
        case _:
            result = b.invert(b.both(any_(condition), any_(b.invert(condition))))
    c.write_condition(c.operands[0], result)


@expansion("activemask")
def activemask(c: InstructionContext, m: Modifiers) -> None:
    """Mask of the lanes of the warp that arrive together."""
    check_count(c, 1)
    c.write(c.operands[0], B32, (WarpExchange(c.kernel).ballot(True),))


@expansion("match")
def match(c: InstructionContext, m: Modifiers) -> None:
    """Mask of the lanes with the same value (any), or of all if they agree (all)."""
    check_count(c, 3)
    if m["type"] == "b64":
        raise c.unsupported("64-bit match is not supported")
    target = c.operands[0]
    first, second = (
        (target.first, target.second) if isinstance(target, ast.Pair) else (target, None)
    )
    b = c.b
    value, mask = c.word(1, B32), c.word(2, U32)
    exchange = WarpExchange(c.kernel)
    same = b.and_(_same_lanes(c, exchange, value), mask)
    if m["mode"] == "any":
        c.write(first, B32, (same,))
        return
    everyone = b.and_(exchange.ballot(True), mask)
    agreed = b.compare("seteq", same, everyone)
    c.write(first, B32, (b.select(agreed, everyone, ZERO),))
    if second is not None:
        c.write_condition(second, agreed)


def _same_lanes(c: InstructionContext, exchange: WarpExchange, value: Value) -> Value:
    """Bits of the arrived lanes whose value is this thread's."""
    b = c.b
    arrived = exchange.ballot(True)
    b.store(exchange.thread_word("match"), value, space="shared")
    exchange.barrier()
    base = b.add(b.shl(exchange.group_start(), 2), exchange.area("match", c.kernel.shape.threads))
    # A loop, since a block for each of 32 lanes would fill the program memory.
    same, lane = b.variable(), b.variable()
    again, done = b.label("lane"), b.label("matched")
    b.assign(same, ZERO)
    b.assign(lane, ZERO)
    b.place(again)
    other = b.load(b.add(b.shl(lane, 2), base), space="shared")
    b.assign(same, b.or_(same, b.shl(b.flag("seteq", other, value), lane)))
    b.assign(lane, b.add(lane, 1))
    b.branch(b.compare("setltu", lane, min(32, c.kernel.shape.threads)), again, done)
    b.place(done)
    exchange.barrier()
    return b.and_(same, arrived)


@expansion("redux")
def redux(c: InstructionContext, m: Modifiers) -> None:
    """Reduction of a register over the lanes of a mask."""
    check_count(c, 3)
    if not isinstance(c.word(2, U32), Imm):
        raise c.unsupported("the member mask must be a constant")
    b = c.b
    op = m["op"]
    value = c.word(1, SCALAR_TYPES[m["type"]])
    # Lanes that take no part count as 0: choose a form of the operation that 0 leaves alone.
    flip = {"and": WORD, "or": 0, "xor": 0, "add": 0}.get(op)
    if flip is None:
        flip = (1 << 31 if m["type"] == "s32" else 0) ^ (WORD if op == "min" else 0)
    name = {"and": "or", "min": "maxu", "max": "maxu"}.get(op, op)
    value = b.xor(value, flip)
    total = WarpExchange(c.kernel).gather(value, lambda acc, word, lane: b.op(name, acc, word))
    c.write(c.operands[0], B32, (b.xor(total, flip),))
