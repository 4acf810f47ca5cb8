"""Threads, warps, barriers, memory and calls on the interpreter."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from qgpu_ptx import diagnostics as d
from qgpu_ptx import parse_ptx, run_ptx

RunBody = Callable[..., list[int]]
STORE = "st.global.u32 [%rd1], %r1;"


@pytest.mark.parametrize(
    ("register", "wanted"),
    [
        ("%tid.x", [0, 1, 2, 0, 1, 2]),
        ("%tid.y", [0, 0, 0, 1, 1, 1]),
        ("%ntid.x", [3] * 6),
        ("%ntid.z", [1] * 6),
        ("%nctaid.y", [1] * 6),
        ("%laneid", [0, 1, 2, 3, 4, 5]),
        ("%lanemask_lt", [0, 1, 3, 7, 15, 31]),
        ("%lanemask_le", [1, 3, 7, 15, 31, 63]),
        ("%lanemask_eq", [1, 2, 4, 8, 16, 32]),
        ("%lanemask_gt", [2**32 - 2**n for n in range(1, 7)]),
        ("%lanemask_ge", [2**32 - 2**n for n in range(6)]),
        ("WARP_SZ", [32] * 6),
    ],
)
def test_special_registers(run_body: RunBody, register: str, wanted: list[int]) -> None:
    body = (
        f"mov.u32 %r1, {register}; mov.u32 %r2, %tid.y; mad.lo.u32 %r2, %r2, 3, %r0;\n"
        "mad.wide.u32 %rd1, %r2, 4, %rd0;" + STORE
    )
    assert run_body(body, [0] * 6, (3, 2)) == wanted


def test_grid_runs_every_cta(run_body: RunBody) -> None:
    body = (
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mad.lo.u32 %r2, %r2, 3, %r1;\n"
        "mad.wide.u32 %rd1, %r2, 4, %rd0; mad.lo.u32 %r1, %r2, 10, 1;" + STORE
    )
    assert run_body(body, [0] * 6, 1, grid=(3, 2)) == [1, 11, 21, 31, 41, 51]


def test_divergent_loop_reconverges(run_body: RunBody) -> None:
    body = (
        "mov.u32 %r1, 0; mov.u32 %r2, %r0;\n"
        "LOOP: setp.eq.u32 %p1, %r2, 0; @%p1 bra DONE;\n"
        "add.u32 %r1, %r1, %r2; sub.u32 %r2, %r2, 1; bra LOOP;\n"
        "DONE: activemask.b32 %r3; setp.ne.u32 %p2, %r3, 0xff; @%p2 mov.u32 %r1, 999;" + STORE
    )
    assert run_body(body, [0] * 8, 8) == [n * (n + 1) // 2 for n in range(8)]


def test_barrier_orders_shared_memory_between_warps(run_body: RunBody) -> None:
    body = (
        ".shared .align 4 .b32 s[96]; mov.u32 %r2, s; mad.lo.u32 %r3, %r0, 4, %r2;\n"
        "st.shared.u32 [%r3], %r0; bar.sync 0; mov.u32 %r4, 95; sub.u32 %r4, %r4, %r0;\n"
        "mad.lo.u32 %r3, %r4, 4, %r2; ld.shared.u32 %r1, [%r3];" + STORE
    )
    assert run_body(body, [0] * 96, 96) == list(range(95, -1, -1))


def test_dynamic_shared_memory_follows_static_and_is_bounded(run_body: RunBody) -> None:
    declarations = ".extern .shared .align 4 .b32 dyn[];\n.shared .align 4 .b32 fixed[3];\n"
    body = (
        "mov.u32 %r1, dyn; st.shared.u32 [dyn+4], 7; ld.shared.u32 %r2, [%r1+4];\n"
        "add.u32 %r1, %r1, %r2;" + STORE
    )
    options = {"declarations": declarations}
    assert run_body(body, [0], dynamic_shared_bytes=8, **options) == [16 + 7]
    with pytest.raises(d.MemoryFaultError, match="shared memory holds 20 bytes"):
        run_body(body, [0], dynamic_shared_bytes=4, **options)


@pytest.mark.parametrize(
    ("op", "wanted"),
    [("popc.u32 %r1, 0, %p1", 20), ("and.pred %p2, 0, %p1", 0), ("or.pred %p2, 0, %p1", 1)],
)
def test_bar_red_combines_all_threads(run_body: RunBody, op: str, wanted: int) -> None:
    select = "" if "popc" in op else "selp.u32 %r1, 1, 0, %p2;"
    body = f"setp.lt.u32 %p1, %r0, 20; bar.red.{op}; {select}" + STORE
    assert run_body(body, [9] * 40, 40) == [wanted] * 40


def test_barrier_with_count_and_arrive(run_body: RunBody) -> None:
    """Producer and consumer warps, as bar.arrive is meant."""
    body = (
        ".shared .b32 s; setp.lt.u32 %p1, %r0, 32; @%p1 bra CONSUME;\n"
        "st.shared.u32 [s], 5; bar.arrive 1, 64; ret;\n"
        "CONSUME: barrier.sync 1, 64; ld.shared.u32 %r1, [s];" + STORE
    )
    assert run_body(body, [0] * 64, 64) == [5] * 32 + [0] * 32


def test_exited_threads_do_not_hold_a_barrier(run_body: RunBody) -> None:
    body = "setp.ge.u32 %p1, %r0, 5; @%p1 exit; bar.sync 0; mov.u32 %r1, 3;" + STORE
    assert run_body(body, [0] * 40, 40) == [3] * 5 + [0] * 35


def test_threads_at_different_barriers_are_a_deadlock(run_body: RunBody) -> None:
    body = "setp.eq.u32 %p1, %r0, 0;\n@%p1 bra A;\nbar.sync 1;\nbra B;\nA: bar.sync 2;\nB:"
    with pytest.raises(d.DeadlockError) as caught:
        run_body(body, [0], 2)
    assert "1 at a barrier 'bar.sync 2;'" in caught.value.message
    assert "1 at a barrier 'bar.sync 1;'" in caught.value.message


SHUFFLES = [
    # mode, b, c, expected source lane of lane i (its own when out of range)
    ("up", 3, 0, lambda i: i - 3 if i >= 3 else i),
    ("down", 3, 31, lambda i: i + 3 if i + 3 < 32 else i),
    ("bfly", 5, 31, lambda i: i ^ 5),
    ("idx", 9, 31, lambda i: 9),
    # width 8: segment mask 0x18 in bits 8..12
    ("up", 2, 0x1800, lambda i: i - 2 if i % 8 >= 2 else i),
    ("down", 2, 0x181F, lambda i: i + 2 if i % 8 < 6 else i),
    ("idx", 3, 0x181F, lambda i: i - i % 8 + 3),
]


@pytest.mark.parametrize(("mode", "b", "c", "source"), SHUFFLES)
def test_shuffles(
    run_body: RunBody, mode: str, b: int, c: int, source: Callable[[int], int]
) -> None:
    body = (
        f"mul.lo.u32 %r2, %r0, 10; shfl.sync.{mode}.b32 %r1|%p1, %r2, {b}, {c}, -1;\n"
        "selp.u32 %r3, 1, 0, %p1; add.u32 %r1, %r1, %r3;" + STORE
    )
    found = run_body(body, [0] * 32, 32)
    assert [value // 10 for value in found] == [source(i) for i in range(32)]
    same = [i for i in range(32) if found[i] % 10 == 0]
    assert all(source(i) == i for i in same)


def test_votes_and_matches(run_body: RunBody) -> None:
    body = (
        "and.b32 %r2, %r0, 3; setp.eq.u32 %p1, %r2, 0;\n"
        "vote.sync.ballot.b32 %r1, %p1, 0xff; vote.sync.any.pred %p2, %p1, 0xff;\n"
        "vote.sync.all.pred %p3, %p1, 0xff; vote.sync.uni.pred %p4, !%p1, 0xff;\n"
        "match.any.sync.b32 %r3, %r2, 0xff; match.all.sync.b32 %r4|%p5, %r2, 0xff;\n"
        "selp.u32 %r5, 256, 0, %p2; selp.u32 %r6, 512, 0, %p3; selp.u32 %r7, 1024, 0, %p4;\n"
        "selp.u32 %r8, 2048, 0, %p5; add.u32 %r1, %r1, %r5; add.u32 %r1, %r1, %r6;\n"
        "add.u32 %r1, %r1, %r7; add.u32 %r1, %r1, %r8; shl.b32 %r3, %r3, 16;\n"
        "or.b32 %r1, %r1, %r3; or.b32 %r1, %r1, %r4;" + STORE
    )
    wanted = [0x11 + 256 + (0x11 << i % 4 << 16) for i in range(8)]
    assert run_body(body, [0] * 8, 8) == wanted


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        ("add.s32", -4), ("min.s32", -4), ("max.s32", 3), ("min.u32", 0), ("max.u32", -1),
        ("and.b32", 0), ("or.b32", -1), ("xor.b32", 0),
    ],
)  # fmt: skip
def test_redux(run_body: RunBody, op: str, wanted: int) -> None:
    body = f"sub.s32 %r2, %r0, 4; redux.sync.{op} %r1, %r2, 0xff;" + STORE
    assert run_body(body, [0] * 8, 8) == [wanted % 2**32] * 8


def test_a_sync_operation_waits_for_divergent_lanes(run_body: RunBody) -> None:
    """Lanes reach the vote at different times: by two paths, and one path is a loop."""
    body = (
        "mov.u32 %r2, %r0; setp.lt.u32 %p1, %r0, 4; @%p1 bra SKIP;\n"
        "LOOP: sub.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra LOOP;\n"
        "SKIP: vote.sync.ballot.b32 %r1, 1, 0xff;" + STORE
    )
    assert run_body(body, [0] * 8, 8) == [0xFF] * 8


def test_a_lane_outside_its_mask_is_an_error(run_body: RunBody) -> None:
    with pytest.raises(d.WarpOperationError, match="lane 1 is not in its own member mask"):
        run_body("vote.sync.any.pred %p1, %p2, 1;", [0], 2)


ATOMICS = [
    ("add.u32", 5, [3], 5 + 3 * 4),
    ("add.s32", 5, [-1], 1),
    ("min.s32", 5, [-7], -7),
    ("max.u32", 5, [-7], -7),
    ("min.u32", 5, [-7], 5),
    ("and.b32", 7, [5], 5),
    ("or.b32", 8, [5], 13),
    ("xor.b32", 1, [3], 1),
    ("exch.b32", 1, [9], 9),
    ("cas.b32", 1, [1, 6], 6),
    ("cas.b32", 1, [2, 6], 1),
    ("inc.u32", 2, [4], 1),
    ("dec.u32", 2, [4], 3),
]


@pytest.mark.parametrize(("op", "start", "values", "wanted"), ATOMICS)
@pytest.mark.parametrize("space", [".global", ""])
def test_atomics_in_lane_order(
    run_body: RunBody, space: str, op: str, start: int, values: list[int], wanted: int
) -> None:
    operands = ", ".join(map(str, values))
    body = f"atom{space}.{op} %r1, [%rd0], {operands};"
    assert run_body(body, [start], 4) == [wanted % 2**32]


def test_atomics_return_old_values_and_red_does_not(run_body: RunBody) -> None:
    body = (
        ".shared .align 8 .u64 s; st.shared.u64 [s], 0; bar.sync 0;\n"
        "atom.shared.add.u64 %rd3, [s], 0x100000000; red.relaxed.gpu.shared.add.u64 [s], 1;\n"
        "bar.sync 0; ld.shared.u64 %rd4, [s]; shr.u64 %rd3, %rd3, 32; add.u64 %rd3, %rd3, %rd4;\n"
        "cvt.u32.u64 %r1, %rd3;" + STORE
    )
    assert run_body(body, [0] * 4, 4) == [4, 5, 6, 7]


def test_the_lowest_lane_wins_a_store_conflict(run_body: RunBody) -> None:
    assert run_body("add.u32 %r1, %r0, 10; st.global.u32 [%rd0], %r1;", [0], 8) == [10]


def test_a_spin_lock_between_lanes_of_a_warp_ends(run_body: RunBody) -> None:
    body = (
        "LOCK: atom.global.cas.b32 %r2, [%rd0], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra LOCK;\n"
        "ld.volatile.global.u32 %r3, [%rd0+4]; add.u32 %r3, %r3, 1;\n"
        "st.volatile.global.u32 [%rd0+4], %r3; membar.gl; st.global.u32 [%rd0], 0;"
    )
    assert run_body(body, [0, 0], 4) == [0, 4]


def test_generic_addresses_reach_every_space(run_body: RunBody) -> None:
    declarations = ".const .align 4 .u32 table[4] = {10, 20, 30, 40};\n.global .u32 g = 3;\n"
    body = (
        ".shared .align 4 .u32 s; .local .align 4 .u32 l;\n"
        "mov.u64 %rd2, s; cvta.shared.u64 %rd3, %rd2; st.u32 [%rd3], 100; ld.shared.u32 %r2, [s];\n"
        "mov.u64 %rd2, l; cvta.local.u64 %rd4, %rd2; st.u32 [%rd4], 1000; ld.local.u32 %r3, [l];\n"
        "ld.const.u32 %r4, [table+8]; mov.u64 %rd5, table; cvta.const.u64 %rd5, %rd5;\n"
        "ld.u32 %r5, [%rd5+4]; ld.global.u32 %r6, [g];\n"
        "isspacep.shared %p1, %rd3; isspacep.local %p2, %rd3; isspacep.global %p3, %rd0;\n"
        "add.u32 %r1, %r2, %r3; add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r5;\n"
        "add.u32 %r1, %r1, %r6; @%p1 add.u32 %r1, %r1, 10000; @%p2 mov.u32 %r1, 0;\n"
        "@!%p3 mov.u32 %r1, 0;" + STORE
    )
    assert run_body(body, [0], declarations=declarations) == [11153]


def test_vectors_and_narrow_accesses(run_body: RunBody) -> None:
    body = (
        "ld.global.v4.u8 {%rs1, %rs2, %rs3, %rs4}, [%rd0]; ld.global.s16 %r1, [%rd0+6];\n"
        "mov.b64 %rd3, {%rs4, %rs3, %rs2, %rs1}; st.global.u64 [%rd0+8], %rd3;\n"
        "mov.b64 {%r2, %r3}, %rd3; st.global.v2.u32 [%rd0+16], {%r3, %r1};\n"
        ".reg .v2 .b32 %v; mov.u32 %v.x, 5; mov.u32 %v.y, 6; st.global.v2.b32 [%rd0+24], %v;"
    )
    words = [0x04030201, 0x80000000, 0, 0, 0, 0, 0, 0]
    wanted = [0x04030201, 0x80000000, 0x30004, 0x10002, 0x10002, 0xFFFF8000, 5, 6]
    assert run_body(body, words) == wanted


def test_switch_through_branch_targets(run_body: RunBody) -> None:
    body = (
        "ts: .branchtargets A, B, A, C;\nbrx.idx %r0, ts;\n"
        "A: mov.u32 %r1, 10; bra E;\nB: mov.u32 %r1, 20; bra E;\nC: mov.u32 %r1, 30;\nE:" + STORE
    )
    assert run_body(body, [0] * 4, 4) == [10, 20, 10, 30]


FACTORIAL = """
.func (.param .u32 result) factorial(.param .u32 n)
{
    .reg .u32 %r<5>; .reg .pred %p;
    .local .align 4 .u32 kept;
    ld.param.u32 %r1, [n];
    st.local.u32 [kept], %r1;
    mov.u32 %r3, 1;
    setp.le.u32 %p, %r1, 1;
    @%p bra OUT;
    sub.u32 %r2, %r1, 1;
    {
        .param .u32 arg; .param .u32 back;
        st.param.u32 [arg], %r2;
        call.uni (back), factorial, (arg);
        ld.param.u32 %r3, [back];
    }
    ld.local.u32 %r1, [kept];
    mul.lo.u32 %r3, %r3, %r1;
OUT: st.param.u32 [result], %r3;
    ret;
}
.func (.reg .u32 out) twice (.reg .u32 in) { add.u32 out, in, in; }
"""


def test_recursive_calls_by_divergent_lanes(run_body: RunBody) -> None:
    body = "call (%r2), factorial, (%r0); call (%r1), twice, (%r2);" + STORE
    wanted = [2, 2, 4, 12, 48, 240]
    assert run_body(body, [0] * 6, 6, declarations=FACTORIAL) == wanted


def test_indirect_call(run_body: RunBody) -> None:
    body = (
        "mov.u64 %rd3, twice; proto: .callprototype (.reg .u32 _) _ (.reg .u32 _);\n"
        "call (%r1), %rd3, (%r0), proto;" + STORE
    )
    assert run_body(body, [0] * 3, 3, declarations=FACTORIAL) == [0, 2, 4]


def test_struct_parameter_and_scalars() -> None:
    text = (
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".entry k(.param .align 4 .b8 s[8], .param .s16 n, .param .u64 p) {\n"
        ".reg .b32 %r<4>; .reg .b64 %rd<3>; ld.param.u32 %r1, [s+4]; ld.param.s16 %r2, [n];\n"
        "ld.param.u64 %rd1, [p]; add.s32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1; }"
    )
    struct = (1).to_bytes(4, "little") + (40).to_bytes(4, "little")
    outcome = run_ptx(parse_ptx(text), "k", 1, 1, [struct, -2, array("i", [0])])
    assert outcome["p"][0] == 38
    assert outcome.arrays[:2] == (None, None)


def test_32_bit_modules_run() -> None:
    text = (
        ".version 7.0\n.target sm_75\n.address_size 32\n"
        ".entry k(.param .u32 p) { .reg .b32 %r<4>;\n"
        "ld.param.u32 %r1, [p]; cvta.to.global.u32 %r1, %r1; st.global.u32 [%r1], 4; }"
    )
    assert run_ptx(parse_ptx(text), "k", 1, 1, [array("I", [0])])[0][0] == 4


def test_numpy_arrays_keep_their_shape_and_the_callers_array_is_not_changed(
    kernel_text: Callable[..., str],
) -> None:
    numpy = pytest.importorskip("numpy")
    given = numpy.zeros((2, 3), dtype=numpy.int32)
    module = parse_ptx(kernel_text("st.global.u32 [%rd0+12], 5;"))
    found = run_ptx(module, "k", 1, 1, [given])[0]
    assert found.tolist() == [[0, 0, 0], [5, 0, 0]]
    assert not given.any()
