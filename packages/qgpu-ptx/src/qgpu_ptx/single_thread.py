"""Code that only one thread of a CTA runs."""

from __future__ import annotations

from qgpu_ptx.flow_graph import dominators, single_assignments
from qgpu_ptx.ir import Function, Imm, Op, Reg, Special, Value
from qgpu_ptx.row_costs import UNKNOWN, Row, estimate_rows


def single_thread_blocks(function: Function, threads: int) -> set[str]:
    """Blocks behind a branch that only one thread takes, such as `tid == 0`."""
    rows = estimate_rows(function, threads)
    single = single_assignments(function)
    over = dominators(function)
    predecessors = function.predecessors()
    found: set[str] = set()
    for block in function.blocks:
        end = block.terminator
        if end.cond is None or end.trap:
            continue
        test = single.get(end.cond.pred)
        if test is None or not _one_thread(test, rows):
            continue
        edge = end.taken if (test.name == "seteq") != end.cond.negate else end.next
        if edge.target is not None and predecessors[edge.target] == [block.label]:
            found |= {label for label, above in over.items() if edge.target in above}
    return found


def _one_thread(test: Op, rows: dict[Reg, Row]) -> bool:
    """Whether a comparison is for equality of what differs in all threads with what does not."""
    if test.name not in ("seteq", "setne"):
        return False
    return _numbers_threads(test.a, rows) and isinstance(test.b, Imm)


def _numbers_threads(value: Value, rows: dict[Reg, Row]) -> bool:
    if isinstance(value, Reg):
        return bool(rows.get(value, UNKNOWN).stride)
    return value is Special.TID
