"""div and rem on the smallest machine, whose program has no room for a table of reciprocals."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qgpu_isa import NANO, run_launch
from qgpu_ptx import parse_ptx, run_ptx
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lower import lower_launch
from qgpu_ptx.memory_layout import read_outputs

words = st.one_of(
    st.integers(0, 32).flatmap(lambda bits: st.integers(0, (1 << bits) - 1)),
    st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1]),
)


@pytest.mark.parametrize("operation", ["div.u32", "rem.u32", "div.s32", "rem.s32"])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(x=words, y=words)
def test_same_as_the_interpreter(
    kernel_text: Callable[..., str], operation: str, x: int, y: int
) -> None:
    body = f"ld.global.u32 %r1,[%rd0]; ld.global.u32 %r2,[%rd0+4]; {operation} %r3,%r1,%r2;"
    module = parse_ptx(kernel_text(f"{body} st.global.u32 [%rd0+8],%r3;"), "k.ptx")
    argument = ArrayArgument("p", "u32", (x, y, 0), output=True)
    spec = LaunchSpec("k", (1, 1, 1), (1, 1, 1), (argument,), {})
    placed = lower_launch(module, spec, NANO)
    machine, _ = run_launch(placed.launch())
    found = read_outputs(machine.state.memory, placed.layout)["p"]
    assert found == list(run_ptx(module, "k", 1, 1, [array("I", (x, y, 0))])[0])
