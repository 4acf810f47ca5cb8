"""The naive lowering's tokens, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from qgpu_isa.baseline import OpKind
from qgpu_ptx import load_launch_spec, parse_launch_spec, parse_ptx
from qgpu_ptx.baseline_program import baseline_for_launch, baseline_function
from qgpu_ptx.diagnostics import LaunchSpecError

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
HEAD = """\
.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .pred %p<8>;
.reg .b32 %r<16>;
.reg .b64 %rd<16>;
"""

# Steps are set apart. "free" instructions are folded: no step holds them.
STRAIGHT = """
ld.param.u64 %rd1, [p];             // free
cvta.to.global.u64 %rd2, %rd1;      // free
mov.u32 %r1, %tid.x;                // free

mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd2, %rd3;
ld.global.u32 %r2, [%rd4];          // live behind: %rd4, %r2: 1 + 2 * 8 = 17

shl.b32 %r3, %r2, 1;
add.s32 %r4, %r3, 7;
setp.gt.u32 %p1, %r4, 20;
@%p1 st.global.u32 [%rd4], %r4;     // nothing lives on: 1

ret;                                // 1
"""

LOOP = """
ld.param.u64 %rd1, [p];             // free
mov.u32 %r1, %tid.x;                // free

mov.u32 %r2, 0;                     // %r2 is written again, so this is no constant: 1 + 8 = 9
again:
add.s32 %r2, %r2, 1;
setp.lt.u32 %p1, %r2, %r1;
@%p1 bra again;                     // live behind: %r2 alone: 9

cvt.u64.u32 %rd2, %r2;
mul.wide.u32 %rd3, %r1, 8;
add.s64 %rd4, %rd1, %rd3;
bar.sync 0;                         // live behind: data %rd2 (two), address %rd4 (one): 25

st.global.u64 [%rd4], %rd2;         // 1

atom.global.add.u32 %r3, [%rd1], 1; // %r3 is not read: 1

ret;                                // 1
"""


def count(body: str, spec: str) -> int:
    module = parse_ptx(f"{HEAD}{body}}}\n", "k.ptx")
    return baseline_for_launch(module, parse_launch_spec(f'kernel = "k"\n{spec}'))


def test_straight_line_code() -> None:
    # Two CTAs of 6 threads are 4 groups, each 17 + 1 + 1 tokens: 76. Thread t computes
    # 2 * 10 t + 7, which is over 20 from t = 1 on; in the second CTA as well: 10 words, 30 tokens.
    spec = 'grid = [2]\nblock = [6]\n[[args]]\nname = "p"\ntype = "u32*"\n'
    assert count(STRAIGHT, spec + "values = [0, 10, 20, 30, 40, 50]\n") == 76 + 30


def test_a_divergent_loop_and_64_bits() -> None:
    # Thread t runs the loop max(1, t) times, a group as often as its busiest lane: threads 0 to 3
    # three times, thread 4 (a group of its own) four times. 2 * 9 + (3 + 4) * 9 + 2 * 28 = 137.
    # Each thread stores two words, and one with the atomic: 5 * 3 words, 45 tokens.
    spec = 'grid = [1]\nblock = [5]\n[[args]]\nname = "p"\ntype = "u64*"\nlength = 5\n'
    assert count(LOOP, spec) == 137 + 45


def test_a_guard_reads_the_old_destinations() -> None:
    module = parse_ptx(
        HEAD + "setp.eq.u32 %p1, %r1, 0;\n@%p1 mov.u32 %r2, 5;\nst.global.u32 [%rd1], %r2;\n}\n"
    )
    (block,) = baseline_function(module.entries[0]).blocks
    _, move, store = block.ops
    assert [name.split(":")[1] for name in move.reads] == ["%p1", "%r2"]
    assert (store.kind, len(store.reads)) == (OpKind.STORE, 2)


def test_registers_of_one_name_in_two_scopes_differ() -> None:
    module = parse_ptx(
        HEAD + "add.u32 %r1, %r2, 1;\n{ .reg .b32 %r1; add.u32 %r1, %r2, 1; }\nret;\n}\n"
    )
    (block,) = baseline_function(module.entries[0]).blocks
    assert block.ops[0].writes != block.ops[1].writes


def test_a_call_has_the_blocks_of_its_function() -> None:
    path = KERNELS / "control" / "function_call.ptx"
    module = parse_ptx(path.read_text(), str(path))
    function, entry = module.functions
    # The argument loads are moves; what is returned is read by `ret` in the same step.
    (block,) = baseline_function(function).blocks
    assert [op.kind for op in block.ops] == [OpKind.ALU] * 5 + [OpKind.BRANCH]
    assert baseline_function(entry).starts[0] == 0
    assert baseline_for_launch(module, load_launch_spec(path.with_suffix(".toml"))) > 0


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(LaunchSpecError, match="1 parameters"):
        count(STRAIGHT, "grid = [1]\nblock = [1]\n")
