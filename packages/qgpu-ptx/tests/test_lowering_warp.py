"""Warp operations, barriers, atomics and memory on machine blocks, against the PTX interpreter."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable

import pytest
from qgpu_isa import DEFAULT, NANO, SMALL, MachineConfig, run_launch
from qgpu_ptx import parse_ptx, run_ptx
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lower import lower_launch
from qgpu_ptx.memory_layout import read_outputs

KernelText = Callable[..., str]


def check(
    text: str, words: list[int], block: tuple[int, int, int], config: MachineConfig = DEFAULT,
    grid: tuple[int, int, int] = (1, 1, 1),
) -> None:  # fmt: skip
    module = parse_ptx(text, "k.ptx")
    argument = ArrayArgument("p", "u32", tuple(words), output=True)
    spec = LaunchSpec("k", grid, block, (argument,), {})
    wanted = list(run_ptx(module, "k", grid, block, [array("I", words)])[0])
    placed = lower_launch(module, spec, config)
    machine, _ = run_launch(placed.launch())
    assert read_outputs(machine.state.memory, placed.layout)["p"] == wanted


def random_words(count: int, seed: int = 1) -> list[int]:
    rng = random.Random(seed)
    return [rng.choice([rng.getrandbits(32), rng.getrandbits(3)]) for _ in range(count)]


LOAD = "ld.global.u32 %r1,[%rd1];"
STORE = "st.global.u32 [%rd1],%r9;"
FULL = "0xffffffff"
ORDERED = ("add", "min", "max")


@pytest.mark.parametrize("threads", [1, 8, 20, 32, 64])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize(("step", "clamp"), [(1, 31), (3, 31), (16, 31), (2, 0x181F), (5, 0)])
def test_shuffle(kernel_text: KernelText, mode: str, step: int, clamp: int, threads: int) -> None:
    clamp = clamp & ~31 if mode == "up" else clamp
    if threads % 32 and mode != "up":
        pytest.skip("reads threads that do not exist, which PTX leaves undefined")
    body = (
        f"{LOAD} shfl.sync.{mode}.b32 %r9|%p1,%r1,{step},{clamp},{FULL};"
        f"selp.b32 %r2,1,0,%p1; shl.b32 %r2,%r2,31; xor.b32 %r9,%r9,%r2; {STORE}"
    )
    check(kernel_text(body), random_words(threads), (threads, 1, 1))


def test_shuffle_with_register_operands(kernel_text: KernelText) -> None:
    body = (
        f"{LOAD} and.b32 %r2,%r1,31; shfl.sync.idx.b32 %r9,%r1,%r2,31,{FULL};"
        f"and.b32 %r3,%r9,7; shfl.sync.bfly.b32 %r9,%r1,%r3,31,{FULL}; {STORE}"
    )
    check(kernel_text(body), random_words(64), (64, 1, 1))


@pytest.mark.parametrize("config", [DEFAULT, SMALL], ids=["default", "small"])
def test_shuffles_in_a_loop(kernel_text: KernelText, config: MachineConfig) -> None:
    body = (
        f"{LOAD} mov.u32 %r3,0;\nL: shfl.sync.down.b32 %r4,%r1,1,31,{FULL};\n"
        "add.s32 %r1,%r1,%r4; add.s32 %r3,%r3,1; setp.lt.u32 %p1,%r3,5;\n@%p1 bra L;\n"
        f"mov.u32 %r9,%r1; {STORE}"
    )
    check(kernel_text(body), random_words(64), (64, 1, 1), config)


VOTES = [
    f"vote.sync.ballot.b32 %r9,%p1,{FULL};",
    f"vote.sync.all.pred %p2,%p1,{FULL}; selp.u32 %r9,1,0,%p2;",
    f"vote.sync.any.pred %p2,!%p1,{FULL}; selp.u32 %r9,1,0,%p2;",
    f"vote.sync.uni.pred %p2,%p1,{FULL}; selp.u32 %r9,1,0,%p2;",
    "activemask.b32 %r9;",
    f"and.b32 %r2,%r1,1; match.any.sync.b32 %r9,%r2,{FULL};",
    f"match.all.sync.b32 %r9|%p2,%r1,{FULL}; selp.u32 %r2,1,0,%p2; add.u32 %r9,%r9,%r2;",
    *(f"redux.sync.{op}.{t} %r9,%r1,{FULL};" for op in ORDERED for t in ("u32", "s32")),
    *(f"redux.sync.{op}.b32 %r9,%r1,{FULL};" for op in ("and", "or", "xor")),
    "bar.red.popc.u32 %r9,0,%p1;",
    "bar.red.and.pred %p2,0,%p1; selp.u32 %r9,1,0,%p2;",
    "bar.red.or.pred %p2,0,%p1; selp.u32 %r9,1,0,%p2;",
]  # fmt: skip


@pytest.mark.parametrize("threads", [8, 20, 64])
@pytest.mark.parametrize("limit", [0, 3, 1 << 31])
@pytest.mark.parametrize("body", VOTES)
def test_vote(kernel_text: KernelText, body: str, threads: int, limit: int) -> None:
    # The same operation twice: scratch words must be clean again.
    text = f"{LOAD} setp.gt.u32 %p1,%r1,{limit}; {body} mov.u32 %r10,%r9; {body} xor.b32 %r9,%r9,%r10; shl.b32 %r10,%r10,1; add.u32 %r9,%r9,%r10;"  # noqa: E501
    check(kernel_text(f"{text} {STORE}"), random_words(threads), (threads, 1, 1))


def test_partial_masks(kernel_text: KernelText) -> None:
    body = (
        f"{LOAD} mov.u32 %r9,%r1; setp.ge.u32 %p1,%r0,16; setp.gt.u32 %p2,%r1,5; @%p1 bra A;\n"
        "shfl.sync.bfly.b32 %r9,%r1,4,31,0xffff; vote.sync.ballot.b32 %r2,%p2,0xffff;\n"
        "xor.b32 %r9,%r9,%r2; bra.uni B;\n"
        "A: shfl.sync.bfly.b32 %r9,%r1,9,31,0xffff0000; vote.sync.any.pred %p3,%p2,0xffff0000;\n"
        f"selp.b32 %r9,%r9,7,%p3;\nB: bar.warp.sync {FULL};\n{STORE}"
    )
    check(kernel_text(body), random_words(32), (32, 1, 1))


ATOMICS = [
    *(f"atom.global.{op}.{t} %r9,[%rd0],%r1;" for op in ORDERED for t in ("u32", "s32")),
    *(f"atom.global.{op}.b32 %r9,[%rd0],%r1;" for op in ("and", "or", "xor", "exch")),
    *(f"atom.global.{op}.u32 %r9,[%rd0],9;" for op in ("inc", "dec")),
    "atom.global.cas.b32 %r9,[%rd0],%r1,%r0;",
    "red.global.add.u32 [%rd0+4],%r1; mov.u32 %r9,%r1;",
    "@%p1 red.global.add.u32 [%rd0],1; mov.u32 %r9,%r1;",
    "mul.wide.u32 %rd2,%r1,5; atom.global.add.u64 %rd3,[%rd0],%rd2; cvt.u32.u64 %r9,%rd3;",
    "mul.wide.u32 %rd2,%r1,5; atom.global.max.s64 %rd3,[%rd0],%rd2; cvt.u32.u64 %r9,%rd3;",
    "cvt.u64.u32 %rd2,%r1; atom.global.cas.b64 %rd3,[%rd0],%rd2,%rd2; cvt.u32.u64 %r9,%rd3;",
]  # fmt: skip


@pytest.mark.parametrize("body", ATOMICS)
@pytest.mark.parametrize("config", [DEFAULT, SMALL], ids=["default", "small"])
def test_atomic(kernel_text: KernelText, body: str, config: MachineConfig) -> None:
    # The interpreter takes whole warps in lane order, the machine takes passes: so one pass.
    head = f"{LOAD} add.s64 %rd1,%rd1,8; setp.lt.s32 %p1,%r0,3;"
    words = [5, 0, *random_words(config.lanes)]
    text = kernel_text(f"{head} {body}\n{STORE}").replace(
        "add.s64 %rd1,%rd0,%rd1;", ("add.s64 %rd1,%rd0,%rd1; ld.global.u32 %r9,[%rd1];")
    )
    check(text, words, (config.lanes, 1, 1), config)


COMBINED = [
    *(f"add.{t}" for t in ("u32", "s32", "u64")),
    *(f"{op}.{t}" for op in ("min", "max") for t in ("u32", "s32")),
    *(f"{op}.{t}" for op in ("and", "or", "xor") for t in ("b32", "b64")),
]


@pytest.mark.parametrize("form", COMBINED)
@pytest.mark.parametrize("threads", [3, 8, 20, 64])
@pytest.mark.parametrize("config", [DEFAULT, SMALL, NANO], ids=lambda config: config.name)
def test_atomic_of_some_lanes(
    kernel_text: KernelText, form: str, threads: int, config: MachineConfig
) -> None:
    """Lanes that take no part, atomics in a loop, and one that a single thread does."""
    letter = "%rd" if form.endswith("64") else "%r"
    threads = min(threads, config.threads)
    body = (
        f"{LOAD} and.b32 %r2,%r1,3; mov.u32 %r9,0; add.s64 %rd5,%rd0,{8 * threads};\n"
        f"A: setp.ge.u32 %p1,%r9,%r2; @%p1 bra B; mul.wide.s32 %rd2,%r1,%r1;\n"
        f"red.global.{form} [%rd0+{8 * threads}],{letter}2; mul.lo.s32 %r1,%r1,77;\n"
        "add.u32 %r9,%r9,1; bra A;\n"
        f"B: setp.ne.u32 %p1,%r0,1; @%p1 bra C; atom.global.{form} {letter}6,[%rd5+8],{letter}2;\n"
        f"C: atom.global.{form} {letter}7,[%rd5+8],{letter}2; {STORE}"
    )
    words = random_words(threads, 7) + [0] * threads + [1, 2**31, 77, 2**32 - 5]
    check(kernel_text(body), words, (threads, 1, 1), config)
    # With the address known when the kernel is lowered, for the lanes of a pass together.
    text = kernel_text(body).replace("cvta.to.global.u64 %rd0,%rd0;", "")
    check(text, words, (threads, 1, 1), config)


def test_atomics_that_do_not_fit_are_done_lane_by_lane(kernel_text: KernelText) -> None:
    body = LOAD + "".join(f"red.global.max.s32 [%rd0+{256 + 4 * i}],%r1;" for i in range(20))
    check(kernel_text(body), random_words(84), (64, 1, 1))


@pytest.mark.parametrize("block", [(4, 8, 2), (8, 4, 1), (5, 3, 4), (1, 6, 2), (16, 1, 3)])
def test_coordinates_joined_again(kernel_text: KernelText, block: tuple[int, int, int]) -> None:
    body = (
        "mov.u32 %r2,%tid.y; mov.u32 %r3,%tid.z; mov.u32 %r4,%ntid.x; mov.u32 %r5,%ntid.y;"
        "mul.lo.u32 %r6,%r2,%r4; or.b32 %r7,%r6,%r0; mad.lo.u32 %r8,%r2,%r4,%r0;"
        "mad.lo.u32 %r9,%r3,%r5,%r2; mad.lo.u32 %r9,%r9,%r4,%r0; mul.wide.u32 %rd2,%r9,4;"
        "mul.lo.u32 %r10,%r4,%r5; mad.lo.u32 %r10,%r3,%r10,%r8; shl.b32 %r7,%r7,8;"
        "add.u32 %r10,%r10,%r7; shl.b32 %r8,%r8,20; xor.b32 %r10,%r10,%r8;"
        "add.s64 %rd2,%rd0,%rd2; st.global.u32 [%rd2],%r10;"
    )
    check(kernel_text(body), [0] * (block[0] * block[1] * block[2]), block)


@pytest.mark.parametrize("type_", ["u8", "s8", "u16", "s16"])
def test_narrow_memory(kernel_text: KernelText, type_: str) -> None:
    size = int(type_[1:]) // 8
    body = (
        f"mul.wide.u32 %rd2,%r0,{size}; add.s64 %rd2,%rd0,%rd2; ld.global.{type_} %r1,[%rd2];"
        f"add.s32 %r1,%r1,%r0; st.global.{type_} [%rd2+64],%r1;"
        "cvt.s32.s8 %r9,%r1; st.global.u32 [%rd1+160],%r9;"
    )
    check(kernel_text(body), random_words(80), (32, 1, 1))


@pytest.mark.parametrize(
    "form", ["v2.u8", "v4.u8", "v2.u16", "v4.u16", "v2.u32", "v4.u32", "v2.u64"]
)
def test_vector_memory(kernel_text: KernelText, form: str) -> None:
    count, bits = int(form[1]), int(form[4:])
    registers = [f"%{ {8: 'r', 16: 'rs', 32: 'r', 64: 'rd'}[bits] }{i + 10}" for i in range(count)]
    size = count * bits // 8
    names = ",".join(registers)
    swapped = ",".join(reversed(registers))
    body = (
        f"mul.wide.u32 %rd2,%r0,{size}; add.s64 %rd2,%rd0,%rd2;"
        f"ld.global.{form} {{{names}}},[%rd2]; st.global.{form} [%rd2+256],{{{swapped}}};"
    )
    check(kernel_text(body), random_words(128), (16, 1, 1))


def test_local_memory_and_calls(kernel_text: KernelText) -> None:
    function = (
        ".func (.param .b32 result) f(.param .b64 where, .param .b32 n) {\n"
        ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>; .local .align 4 .b8 own[8];\n"
        "ld.param.u64 %rd1,[where]; ld.param.u32 %r1,[n]; ld.u32 %r2,[%rd1+4];\n"
        "setp.lt.s32 %p1,%r1,3; st.local.u32 [own+4],%r2; @%p1 bra S;\n"
        "ld.local.u32 %r3,[own+4]; st.param.b32 [result],%r3; ret;\n"
        "S: st.param.b32 [result],77; ret;\n}\n"
    )
    body = (
        f"{LOAD} .local .align 4 .b8 a[12]; mov.u64 %rd2,a; cvta.local.u64 %rd3,%rd2;\n"
        "st.local.u32 [%rd2+4],%r1; and.b32 %r3,%r0,1; mul.wide.u32 %rd4,%r3,4;\n"
        "add.s64 %rd5,%rd2,%rd4; st.local.u32 [%rd5+4],%r0;\n"
        "{ .param .b64 x; .param .b32 y; .param .b32 z; st.param.b64 [x],%rd3;\n"
        "st.param.b32 [y],%r0; call.uni (z), f, (x, y); ld.param.b32 %r9,[z]; }\n"
        f"ld.local.u32 %r4,[a+8]; add.s32 %r9,%r9,%r4; {STORE}"
    ).replace("ld.local.u32 %r4,[a+8]; add.s32 %r9,%r9,%r4; ", "")
    check(kernel_text(body, function), random_words(12), (12, 1, 1))


PARAMETERS = [
    *(f".param .b32 q; st.param.b32 [q],%r1; ld.param.{t} %r9,[q+{i}];"
      for t, i in (("u8", 0), ("s8", 0), ("u8", 3), ("s8", 1), ("u16", 0), ("s16", 2), ("u32", 0))),
    ".param .b64 q; mul.wide.u32 %rd2,%r1,%r1; st.param.b64 [q],%rd2; ld.param.s16 %r9,[q+6];",
    ".param .align 4 .b8 q[8]; st.param.b32 [q],%r1; st.param.b8 [q+1],%r0; st.param.b16 [q+6],%r1;"
    "st.param.b16 [q+4],%r0; ld.param.u32 %r9,[q]; ld.param.u32 %r2,[q+4]; xor.b32 %r9,%r9,%r2;",
    ".param .b8 q; st.param.b8 [q],%r1; ld.param.s8 %r9,[q];",
]  # fmt: skip


@pytest.mark.parametrize("body", PARAMETERS)
def test_parts_of_parameters(kernel_text: KernelText, body: str) -> None:
    check(kernel_text(f"{LOAD} {{ {body} }} {STORE}"), random_words(12), (12, 1, 1))


@pytest.mark.parametrize("type_", ["u8", "s8", "u16", "s16"])
def test_narrow_arguments_of_functions(kernel_text: KernelText, type_: str) -> None:
    function = (
        ".func (.param .b32 result) f(.param .b32 n) {\n.reg .b32 %r<9>;\n"
        f"ld.param.{type_} %r1,[n]; st.param.b32 [result],%r1; ret;\n}}\n"
    )
    body = (
        f"{LOAD} {{ .param .b32 y; .param .b32 z; st.param.b32 [y],%r1;\n"
        f"call.uni (z), f, (y); ld.param.{type_} %r9,[z]; }}\n{STORE}"
    )
    check(kernel_text(body, function), random_words(12), (12, 1, 1))


@pytest.mark.parametrize("block", [(3, 4, 2), (4, 2, 3), (8, 2, 1), (5, 1, 3)])
def test_block_shapes(kernel_text: KernelText, block: tuple[int, int, int]) -> None:
    threads = block[0] * block[1] * block[2]
    body = (
        "mov.u32 %r1,%tid.y; mov.u32 %r2,%tid.z; mov.u32 %r3,%ctaid.x; mov.u32 %r4,%ctaid.y;\n"
        f"mad.lo.u32 %r5,%r2,{block[1]},%r1; mad.lo.u32 %r5,%r5,{block[0]},%r0;\n"
        f"mad.lo.u32 %r6,%r4,3,%r3; mad.lo.u32 %r6,%r6,{threads},%r5; mul.wide.u32 %rd2,%r6,4;\n"
        "add.s64 %rd2,%rd0,%rd2; mad.lo.u32 %r7,%r0,1000,%r1; mad.lo.u32 %r7,%r7,100,%r2;\n"
        "mov.u32 %r8,%laneid; mov.u32 %r9,%warpid; mad.lo.u32 %r7,%r8,7,%r7;\n"
        "mov.u32 %r10,%lanemask_lt; xor.b32 %r7,%r7,%r10; mad.lo.u32 %r7,%r9,13,%r7;\n"
        "mad.lo.u32 %r7,%r3,11,%r7; mad.lo.u32 %r7,%r4,17,%r7; st.global.u32 [%rd2],%r7;"
    )
    check(kernel_text(body), [0] * (6 * threads), block, grid=(3, 2, 1))


def test_branch_table(kernel_text: KernelText) -> None:
    body = (
        f"{LOAD} and.b32 %r1,%r0,3; mov.u32 %r9,5;\nT: .branchtargets A,B,C,D;\n"
        "brx.idx %r1, T;\nA: mov.u32 %r9,10; bra E;\nB: mov.u32 %r9,20;\nC: add.s32 %r9,%r9,1;"
        f" bra E;\nD: @%p0 mov.u32 %r9,9;\nE: {STORE}"
    ).replace("@%p0 ", "")
    check(kernel_text(body), random_words(16), (16, 1, 1))


def test_nano_machine(kernel_text: KernelText) -> None:
    body = f"{LOAD} mad.lo.s32 %r9,%r1,%r1,%r0; {STORE}"
    check(kernel_text(body), random_words(6), (6, 1, 1), NANO)


EXTRA = "shfl.sync.bfly.b32 %r2,%r1,{step},31,{mask}; add.u32 %r1,%r1,%r2;"


@pytest.mark.parametrize("config", [SMALL, DEFAULT], ids=lambda c: c.name)
@pytest.mark.parametrize("first", [8, 16, 24])
def test_some_passes_run_warp_operations_that_others_skip(
    kernel_text: KernelText, first: int, config: MachineConfig
) -> None:
    mask = f"{(1 << 32) - (1 << first):#x}"
    some = "".join(EXTRA.format(step=step, mask=mask) for step in (1, 2, 4))
    body = (
        f"{LOAD} setp.lt.u32 %p1,%r0,{first}; @%p1 bra J;\n{some}\n"
        f"J: bar.warp.sync {FULL}; shfl.sync.up.b32 %r9,%r1,5,0,{FULL};"
        f"shfl.sync.bfly.b32 %r2,%r9,16,31,{FULL}; add.u32 %r9,%r9,%r2; {STORE}"
    )
    check(kernel_text(body), random_words(32), (32, 1, 1), config)


@pytest.mark.parametrize("config", [SMALL, DEFAULT], ids=lambda c: c.name)
def test_passes_leave_a_loop_of_warp_operations_one_after_the_other(
    kernel_text: KernelText, config: MachineConfig
) -> None:
    # The threads of pass (or two) k go round k + 1 times, then all meet.
    body = (
        f"{LOAD} shr.u32 %r3,%r0,3; mov.u32 %r4,0;\n"
        "L: activemask.b32 %r5; shfl.sync.bfly.b32 %r2,%r1,1,31,%r5; add.u32 %r1,%r1,%r2;"
        "shfl.sync.bfly.b32 %r2,%r1,4,31,%r5; add.u32 %r1,%r1,%r2;"
        "add.u32 %r4,%r4,1; setp.le.u32 %p1,%r4,%r3; @%p1 bra L;\n"
        f"shfl.sync.down.b32 %r9,%r1,9,31,{FULL}; add.u32 %r9,%r9,%r1; {STORE}"
    )
    check(kernel_text(body), random_words(32), (32, 1, 1), config)


def test_lanes_that_vote_again_with_fewer_count_fewer(kernel_text: KernelText) -> None:
    body = (
        f"{LOAD} activemask.b32 %r9; setp.lt.u32 %p1,%r0,3; @%p1 bra J;\n"
        "activemask.b32 %r2; xor.b32 %r9,%r9,%r2; mul.lo.u32 %r9,%r9,%r2;\n"
        f"J: {STORE}"
    )
    check(kernel_text(body), random_words(8), (8, 1, 1))
