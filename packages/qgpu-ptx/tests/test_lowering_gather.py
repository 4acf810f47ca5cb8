"""Atomics whose operands all lanes compute: what the PTX interpreter gives, in fewer tokens."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qgpu_isa import DEFAULT, SMALL, MachineConfig, run_launch
from qgpu_ptx import parse_ptx, run_ptx
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lower import lower_launch
from qgpu_ptx.memory_layout import read_outputs

KernelText = Callable[..., str]
LOAD = "ld.global.u32 %r1,[%rd1];"
WORDS = 80

operands = st.sampled_from(
    [
        "mov.u32 %r2,%r1;",
        "and.b32 %r2,%r1,63;",
        "neg.s32 %r2,%r1;",
        "shr.u32 %r2,%r1,3; xor.b32 %r2,%r2,%r1;",
        "or.b32 %r2,%r1,%r0;",
        "mul.lo.u32 %r2,%r0,7;",
        "mov.u32 %r2,5;",
        "sub.u32 %r2,9,%r0;",
        "mul.lo.u32 %r2,%r0,3; mul.wide.u32 %rd2,%r2,4; add.s64 %rd2,%rd0,%rd2;"
        "ld.global.u32 %r2,[%rd2];",
    ]
)
forms = st.sampled_from(["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"])
steps = st.lists(
    st.one_of(
        st.builds("{} red.global.{} [%rd0+{}],%r2;".format, operands, forms, st.sampled_from(
            # Among the words that are loaded, and behind them.
            [0, 4, 40, 4 * (WORDS - 1)]
        )),
        st.builds("{} cvt.s64.s32 %rd5,%r2; red.global.add.u64 [%rd0+{}],%rd5;".format, operands,
                  st.sampled_from([8, 4 * (WORDS - 2)])),
        st.just("ld.global.u32 %r1,[%rd1];"),
        st.just("setp.gt.u32 %p1,%r0,5; @%p1 add.u32 %r1,%r1,1;"),
        st.just("bar.sync 0;"),
        st.just("setp.gt.u32 %p1,%r1,200; @%p1 bra END;"),
    ),
    min_size=1,
    max_size=5,
)  # fmt: skip


def tokens(
    text: str, words: list[int], config: MachineConfig, threads: int, without: tuple[str, ...] = ()
) -> int:
    """Tokens of the launch, whose results must be the interpreter's."""
    # Only addresses known when the kernel is lowered are combined: set once.
    text = text.replace("cvta.to.global.u64 %rd0,%rd0;", "")
    module = parse_ptx(text, "k.ptx")
    argument = ArrayArgument("p", "u32", tuple(words), output=True)
    spec = LaunchSpec("k", (1, 1, 1), (threads, 1, 1), (argument,), {})
    wanted = list(run_ptx(module, "k", 1, threads, [array("I", words)])[0])
    placed = lower_launch(module, spec, config, without=without)
    machine, steps = run_launch(placed.launch())
    assert read_outputs(machine.state.memory, placed.layout)["p"] == wanted, text
    return len(steps)


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps, st.data(), st.lists(st.integers(0, 2**32 - 1), min_size=WORDS, max_size=WORDS))
def test_same_as_the_interpreter(
    kernel_text: KernelText, steps: list[str], data: st.DataObject, words: list[int]
) -> None:
    config = data.draw(st.sampled_from([DEFAULT, SMALL]))
    # One pass: the interpreter goes by warps, and threads read what others add to.
    threads = data.draw(st.integers(1, config.lanes))
    text = kernel_text(f"{LOAD}\n" + "\n".join(steps) + "\nEND:")
    for without in ((), ("gather",)):
        tokens(text, words, config, threads, without)


@pytest.mark.parametrize("threads", [7, 8, 16, 32])
def test_no_row_is_sent_for_operands(kernel_text: KernelText, threads: int) -> None:
    """Several passes add up a strided array, and take a mask's bits away."""
    body = (
        "mul.lo.u32 %r2,%r0,2; mul.wide.u32 %rd2,%r2,4; add.s64 %rd2,%rd0,%rd2;"
        "ld.global.u32 %r3,[%rd2]; and.b32 %r4,%r3,63; neg.s32 %r4,%r4;"
        "red.global.add.u32 [%rd0+512],%r3; red.global.add.u32 [%rd0+516],%r4;"
    )
    words = [2654435761 * i % 2**32 for i in range(130)]
    text = kernel_text(body)
    with_it, without = (tokens(text, words, DEFAULT, threads, w) for w in ((), ("gather",)))
    assert with_it < without
