"""Lowered kernels hold no operation whose result nobody reads, and no copy of a register."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from qgpu_isa import PROFILES
from qgpu_isa.program import DstKind, Source
from qgpu_ptx import load_launch_spec, parse_ptx
from qgpu_ptx.ir import Function
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.liveness import live_out
from qgpu_ptx.lower import PlacedLaunch, lower_launch
from qgpu_ptx.passes.coalesce import copied
from qgpu_ptx.ptx_ast import Module

ROOT = Path(__file__).resolve().parents[3] / "kernels"
# The block that begins with `mov %r3` joins the first one when the branch is known not to be taken.
LOOP = """
mov.u32 %r2, 0;
setp.gt.u32 %p1, %r0, 31;
@%p1 bra DONE;
mov.u32 %r3, 0;
mov.u32 %r2, %r3;
cvt.u64.u32 %rd2, %r0;
mul.lo.s64 %rd2, %rd2, 20;
add.s64 %rd2, %rd2, %rd0;
LOOP:
ld.global.u32 %r4, [%rd2];
add.u32 %r2, %r2, %r4;
add.s64 %rd2, %rd2, 4;
add.u32 %r3, %r3, 1;
setp.ne.u32 %p2, %r3, 5;
@%p2 bra LOOP;
DONE:
st.global.u32 [%rd1], %r2;
"""


def lowered(module: Module, spec: LaunchSpec) -> tuple[Function, PlacedLaunch]:
    stages: dict[str, Function] = {}
    placed = lower_launch(module, spec, PROFILES["default"], watch=stages.__setitem__)
    return stages["legalize"], placed


def unread(function: Function) -> list[str]:
    """Operations without effect whose results nothing reads."""
    found = []
    live_at_end = live_out(function)
    for block in function.blocks:
        live = set(live_at_end[block.label])
        if block.terminator.cond is not None:
            live.add(block.terminator.cond.pred)
        for op in reversed(block.ops):
            if op.dst is not None and op.dst not in live and not op.has_effect:
                found.append(str(op))
            if op.dst is not None and op.guard is None:
                live.discard(op.dst)
            live |= set(op.uses())
    return found


def check(module: Module, spec: LaunchSpec) -> None:
    function, placed = lowered(module, spec)
    assert unread(function) == []
    assert [str(op) for op in function.ops() if copied(op) and copied(op) == op.dst] == []
    for block in placed.kernel.image.blocks:
        for code in block.slots.values():
            if code.name == "add" and code.dst is DstKind.REG and code.pred.index is None:
                itself = code.a.source is Source.REG and code.a.register == code.dst_index
                assert not (itself and code.b.source is Source.ZERO)


def test_a_loop_behind_a_branch_that_is_never_taken(kernel_text: Callable[..., str]) -> None:
    array = ArrayArgument("p", "u32", tuple(range(64)), True)
    spec = LaunchSpec("k", (1, 1, 1), (8, 1, 1), (array,), {})
    check(parse_ptx(kernel_text(LOOP)), spec)


@pytest.mark.parametrize(
    "name",
    ["hash/adler32", "matrix/matmul_naive", "scan/running_max", "sort/insertion_sort"],
)
def test_kernels_with_loops(name: str) -> None:
    path = ROOT / f"{name}.ptx"
    check(parse_ptx(path.read_text(), str(path)), load_launch_spec(path.with_suffix(".toml")))


@pytest.mark.parametrize("name", ["elementwise/vector_add", "elementwise/saxpy"])
def test_a_kernel_that_has_nothing_to_do(name: str) -> None:
    path = ROOT / f"{name}.ptx"
    spec = load_launch_spec(path.with_suffix(".toml"))
    nothing = tuple(replace(a, value=0) if a.name == "n" else a for a in spec.args)
    _, placed = lowered(parse_ptx(path.read_text()), replace(spec, args=nothing, expected={}))
    assert len(placed.kernel.image.blocks) == 1


def test_variables_are_zero_unless_they_say_otherwise(kernel_text: Callable[..., str]) -> None:
    text = kernel_text("st.global.u32 [%rd0], %r0;", ".global .align 4 .b8 counts[8];")
    spec = LaunchSpec("k", (1, 1, 1), (1, 1, 1), (ArrayArgument("p", "u32", (0,), True),), {})
    placed = lower_launch(parse_ptx(text), spec, PROFILES["default"])
    assert list(placed.kernel.memory.values()) == [0, 0]
