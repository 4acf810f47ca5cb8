"""Reading and printing PTX: constructs, messages with their place, arbitrary damage."""

from __future__ import annotations

import contextlib
from array import array
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qgpu_ptx import CudaLocation, QgpuPtxError, parse_ptx, ptx_ast, run_ptx
from qgpu_ptx.diagnostics import PtxSyntaxError

INPUTS = Path(__file__).parent / "inputs"
HEADER = ".version 7.0\n.target sm_75, debug\n.address_size 64\n"

EVERYTHING = (
    HEADER
    + """
// a comment
/* a longer
   comment */
.file 1 "a.cu"
.file 2 "b.h", 1234, 99
.extern .shared .align 16 .b8 dynamic[];
.extern .shared .align 16 .b8 sized[][4];
.visible .const .align 4 .b8 table[8] = {1, 2, 0x3, 04, 0b101, 6U, -7, 8};
.global .u32 i, j = 5;
.global .u64 pointers[2] = {generic(i), j+4};
.global .align 8 .v2 .u32 grid[2][2] = {{1, 2}, {3, 4}};
.global .f32 scale = 0f3F800000;
.weak .global .attribute(.managed) .align 4 .u32 managed;
.extern .func (.param .b32 r) puts (.param .b64 s);
.func noargs;
.func (.reg .u32 out) twice (.reg .u32 in) .noreturn { add.u32 out, in, in; ret; }
.visible .entry k(
    .param .u64 .ptr .global .align 4 p,
    .param .u64 .ptr q,
    .param .align 4 .b8 s[16],
    .param .u32 n
)
.maxntid 128, 1, 1
.minnctapersm 2
.pragma "nounroll";
{
    .reg .pred %p<3>;
    .reg .b32 %r<16>, a, b;
    .reg .v4 .b32 %v;
    .reg .b64 %rd<8>;
    .local .align 4 .b8 __local_depot0[64];
    .pragma "nounroll";
    .loc 1 5 3
    ld.param.u64 %rd1, [p];
    .loc 2 6 3, function_name $L__info0, inlined_at 1 5 0
    @!%p1 bra $L__BB0_2;
    @%p1 ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+-8];
    .loc 1 7 1, function_name $L__info0+4, inlined_at 1 5 0
    ld.u32 %r1, [%rd1-8];
    ld.shared.u32 %r1, [dynamic+16];
    ld.global.u32 %r1, [16];
$L__BB0_2:
    shfl.sync.idx.b32 %r1|%p2, %r1, 0, 31, -1;
    mov.u32 %r2, %tid.x;
    mov.u64 %rd2, table+4;
    mov.b64 %rd2, {%r1, %r2};
    mov.f32 %r1, 0f3F800000;
    mov.f64 %rd2, -0d3FF0000000000000;
    mov.f32 %r1, 1.5e-3;
    selp.b32 %r1, 1, 2, !%p1;
    { // callseq
        .reg .b32 temp;
        .param .b32 param0;
        st.param.b32 [param0+0], %r1;
        call.uni (retval0),
        puts,
        (
        param0
        );
        call noargs;
        call (%r1), %rd1, (%r2), proto;
    }
    proto: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;
    targets: .branchtargets $L__BB0_2, done;
    brx.idx %r1, targets;
done:
    exit;
}
.section .debug_str
{
$L__info0:
.b8 107,0
.b32 .debug_abbrev
.b64 $L__BB0_2
.b32 done-$L__BB0_2
.b64 .debug_str+4
}
"""
)


def test_every_construct_parses_and_prints_back() -> None:
    module = parse_ptx(EVERYTHING, "all.ptx")
    assert parse_ptx(str(module)) == module
    assert [entry.name for entry in module.entries] == ["k"]
    assert module.files == {1: "a.cu", 2: "b.h"}
    pointer = module.entries[0].parameters[0]
    assert (pointer.pointer, pointer.pointer_space, pointer.pointer_align) == (True, "global", 4)


def instructions(block: ptx_ast.Block) -> list[ptx_ast.Instruction]:
    found = []
    for statement in block.statements:
        if isinstance(statement, ptx_ast.Instruction):
            found.append(statement)
        elif isinstance(statement, ptx_ast.Block):
            found.extend(instructions(statement))
    return found


def test_instructions_carry_their_cuda_line_and_their_ptx_line() -> None:
    module = parse_ptx(EVERYTHING, "all.ptx")
    body = module.entries[0].body
    assert body is not None
    first, second, third = instructions(body)[:3]
    assert first.cuda_location == CudaLocation("a.cu", 5, 3)
    assert second.cuda_location == third.cuda_location == CudaLocation("b.h", 6, 3)
    assert first.span is not None
    assert (first.span.line, first.span.column) == (
        EVERYTHING[: EVERYTHING.index("ld.param.u64 %rd1")].count("\n") + 1,
        5,
    )
    assert first.span.text == "ld.param.u64 %rd1, [p];"


KERNEL = HEADER + ".entry k()\n{\n"
ERRORS = [
    (KERNEL + "add.s32 %r1, %r2\nret;\n}\n", 7, 1, "found 'ret'"),
    (KERNEL + "add.s32 %r1, ^%r2;\n}\n", 6, 14, "an operand"),
    (KERNEL + "  ret;\n", 6, 6, "the file ends"),
    (KERNEL + "ld.u32 %r1, [%r2;\n}", 6, 17, "found ';'"),
    (KERNEL + "mov.u32 %r1, 0x1FFFFFFFFFFFFFFFF;\n}", 6, 14, "64 bits"),
    (KERNEL + "mov.u32 %r1, 089;\n}", 6, 14, "octal"),
    (KERNEL + ".reg .b32 .b32 %r;\n}", 6, 1, "one type"),
    (HEADER + ".global .align 3 .b8 x;", 4, 1, "power of two"),
    (".address_size 48\n", 1, 1, ".address_size 48"),
    ("hello", 1, 1, "a declaration"),
    (KERNEL + ".loc 1 2 3, name $L, at 1 2 3\n}", 6, 11, "name ... at"),
    (HEADER + '.file 1 "a.cu\n', 4, 9, "a string"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), ERRORS)
def test_syntax_errors_name_line_and_column(
    text: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse_ptx(text, "bad.ptx")
    error = caught.value
    assert error.span is not None
    assert (error.span.line, error.span.column) == (line, column), error.render()
    assert message in error.render()
    assert error.render().startswith(f"bad.ptx:{line}:{column}: error: [P001] ")


def test_a_missing_semicolon_is_hinted_at_its_line() -> None:
    with pytest.raises(PtxSyntaxError, match="missing at the end of line 6"):
        parse_ptx(ERRORS[0][0], "bad.ptx")


SOURCES = [EVERYTHING, *(path.read_text() for path in sorted(INPUTS.glob("*.ptx")))]


def parse_or_refuse(text: str) -> ptx_ast.Module | None:
    """The module, or None where the reader refuses it; any other exception is a failure."""
    try:
        return parse_ptx(text, "damaged.ptx")
    except QgpuPtxError as error:
        error.render()
        return None


def run_or_refuse(module: ptx_ast.Module) -> None:
    for entry in module.entries:
        args = [array("I", [0] * 64) for _ in entry.parameters]
        with contextlib.suppress(QgpuPtxError):
            run_ptx(module, entry.name, 1, 4, args, max_steps=200)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_files_raise_nothing_but_our_error(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SOURCES))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 20)))
        inserted = data.draw(
            st.one_of(
                st.text(max_size=4),
                st.sampled_from([*"{}[]();,@%.:|!+-<>=0", ".reg ", "{{", "0x", ".v4", "99999999"]),
            )
        )
        text = text[:start] + inserted + text[end:]
    module = parse_or_refuse(text)
    if module is not None:
        assert parse_ptx(str(module)) == module
        run_or_refuse(module)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(EVERYTHING)))
def test_truncated_files_raise_nothing_but_our_error(length: int) -> None:
    parse_or_refuse(EVERYTHING[:length])


names = st.from_regex(r"[%$_][a-z0-9_]{1,5}", fullmatch=True)
integers = st.builds(ptx_ast.Integer, st.integers(-(2**64) + 1, 2**64 - 1))
simple = st.one_of(
    st.builds(ptx_ast.Name, names, st.sampled_from([None, "x", "w"])),
    integers,
    st.builds(ptx_ast.Float, st.sampled_from(["0f3F800000", "-1.5"])),
)
operands = st.one_of(
    simple,
    st.builds(ptx_ast.Pair, simple, simple),
    st.builds(ptx_ast.Negated, st.builds(ptx_ast.Name, names)),
    st.builds(ptx_ast.SymbolOffset, st.builds(ptx_ast.Name, names), st.integers(-9, 9)),
    st.builds(ptx_ast.Address, simple, st.integers(-99, 99)),
    st.builds(ptx_ast.Vector, st.lists(simple, min_size=1, max_size=4).map(tuple)),
    st.builds(ptx_ast.ArgumentList, st.lists(simple, max_size=3).map(tuple)),
)
statements = st.one_of(
    st.builds(
        ptx_ast.Instruction,
        opcode=st.from_regex(r"[a-z]{2,5}", fullmatch=True),
        modifiers=st.lists(st.sampled_from(["u32", "wide", "L1::a"]), max_size=3).map(tuple),
        operands=st.lists(operands, max_size=4).map(tuple),
        guard=st.none() | st.builds(ptx_ast.Guard, names, st.booleans()),
        cuda_location=st.none(),
        span=st.none(),
    ),
    st.builds(ptx_ast.Label, names),
    st.builds(
        ptx_ast.Registers,
        type=st.sampled_from(["b32", "pred"]),
        names=st.lists(
            st.builds(ptx_ast.RegisterName, names, st.none() | st.integers(1, 99)),
            min_size=1,
            max_size=3,
        ).map(tuple),
        vector=st.sampled_from([1, 2, 4]),
    ),
    st.builds(ptx_ast.BranchTargets, names, st.lists(names, min_size=1, max_size=3).map(tuple)),
    st.builds(
        ptx_ast.Variable,
        space=st.sampled_from(["shared", "local", "param"]),
        type=st.sampled_from(["b8", "u64"]),
        name=names,
        align=st.sampled_from([None, 1, 16]),
        dimensions=st.lists(st.integers(0, 9), max_size=2).map(tuple),
        initializer=st.none() | integers,
        linkage=st.just(()),
        pointer=st.just(False),
        pointer_space=st.none(),
        pointer_align=st.none(),
        attributes=st.just(()),
    ),
)
blocks = st.recursive(
    st.builds(ptx_ast.Block, st.lists(statements, max_size=4).map(tuple)),
    lambda inner: st.builds(ptx_ast.Block, st.lists(statements | inner, max_size=4).map(tuple)),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(blocks)
def test_printing_a_tree_and_parsing_it_gives_the_same_tree(block: ptx_ast.Block) -> None:
    module = ptx_ast.Module("7.0", ("sm_75",), 64, (ptx_ast.Function("entry", "k", body=block),))
    assert parse_ptx(str(module)) == module
