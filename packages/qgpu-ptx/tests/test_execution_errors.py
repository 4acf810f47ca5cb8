"""Every refusal and fault: its class, its place, and the thread it names."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from qgpu_ptx import diagnostics as d
from qgpu_ptx import parse_ptx, run_ptx

RunBody = Callable[..., list[int]]


def test_out_of_bounds_names_kernel_thread_instruction_and_both_lines(run_body: RunBody) -> None:
    body = '.file 1 "k.cu"\n.loc 1 12 5\nst.global.u32 [%rd1], %r0;'
    with pytest.raises(d.MemoryFaultError) as caught:
        run_body(body, [0] * 3, 4)
    error = caught.value
    assert error.thread == d.ThreadName("k", (0, 0, 0), (3, 0, 0))
    assert error.instruction == "st.global.u32 [%rd1], %r0;"
    assert error.cuda_location == d.CudaLocation("k.cu", 12, 5)
    assert error.span is not None
    assert (error.span.line, error.span.column) == (18, 1)
    text = error.render()
    assert "k.ptx:18:1: error: [P011] store of 4 bytes" in text
    assert "offset 12 of 'p', which holds 12 bytes" in text
    assert "CUDA source: k.cu:12:5" in text


FAULTS = [
    ("ld.global.u32 %r1, [%rd0+2];", d.MisalignedAccessError, "not a multiple"),
    ("ld.global.v2.u32 {%r1, %r2}, [%rd0+4];", d.MisalignedAccessError, "access size 8"),
    ("ld.global.u32 %r1, [%rd0+-4];", d.MemoryFaultError, "out of bounds"),
    ("ld.global.u32 %r1, [0];", d.MemoryFaultError, "no allocation"),
    ("ld.shared.u32 %r1, [0];", d.MemoryFaultError, "shared memory holds 0 bytes"),
    ("ld.local.u32 %r1, [4];", d.MemoryFaultError, "local memory"),
    ("L: bra L;", d.StepLimitError, "more than 50"),
    ("trap;", d.TrapError, "trap"),
    ("mov.u32 %r1, 9; ts: .branchtargets A; brx.idx %r1, ts; A:", d.ExecutionError, "index 9"),
    ("bar.sync 16;", d.ExecutionError, "barrier 16"),
    ("bar.sync 0, 33;", d.ExecutionError, "multiple of 32"),
    ("bar.sync 0, 64;", d.DeadlockError, "deadlock"),
    ("mov.u64 %rd3, 5; call %rd3, p0;", d.ExecutionError, "no function"),
]


@pytest.mark.parametrize(("body", "error", "message"), FAULTS)
def test_faults(run_body: RunBody, body: str, error: type[d.QgpuPtxError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        run_body(body, [0, 0], max_steps=50)
    assert caught.value.span is not None


def test_runaway_recursion_is_bounded(run_body: RunBody) -> None:
    with pytest.raises(d.CallDepthError, match="nested more than"):
        run_body("call f;", [0], declarations=".func f { call f; }")


def test_stores_to_constants_fault(run_body: RunBody) -> None:
    body = "mov.u64 %rd3, c; st.u32 [%rd3], 1;"
    with pytest.raises(d.MemoryFaultError, match="constant memory 'c'"):
        run_body(body, [0], declarations=".const .u32 c = 1;")


def test_unwritten_registers_are_zero_or_refused(run_body: RunBody) -> None:
    body = "st.global.u32 [%rd1], %r9;"
    assert run_body(body, [5]) == [0]
    with pytest.raises(d.UninitialisedRegisterError, match="%r9"):
        run_body(body, [5], refuse_unwritten_registers=True)


REFUSALS = [
    ("add.f32 %r1, %r1, %r2;", d.UnsupportedInstructionError, "floating point"),
    ("adds.u32 %r1, %r1, %r2;", d.UnsupportedInstructionError, "did you mean 'add'"),
    ("tex.2d.v4.s32.s32 {%r1,%r1,%r1,%r1}, [%rd0];", d.UnsupportedInstructionError, "expected"),
    ("shl.u32 %r1, %r1, 1;", d.UnsupportedInstructionError, r"shl.{b16,b32,b64}"),
    ("mul.u32.lo %r1, %r1, %r2;", d.UnsupportedInstructionError, "in that order"),
    ("add.u32 %r1, %r1;", d.OperandError, "takes 3 operands, 2 given"),
    ("add.u32 %r1, %rd1, 1;", d.OperandError, ".b64 register cannot be a .u32"),
    ("add.u32 %r1, %p1, 1;", d.OperandError, ".pred register"),
    ("add.u32 5, %r1, 1;", d.OperandError, "name is needed"),
    ("add.u32 %r1, 1.5, 1;", d.OperandError, "floating-point constant"),
    ("add.u32 %r1, !%r1, 1;", d.OperandError, "negated"),
    ("ld.global.v2.u32 %r1, [%rd0];", d.OperandError, "moves 2 values"),
    ("ld.global.u32 %r1, %rd0;", d.OperandError, "in brackets"),
    ("mov.u32 %r1, %nothing;", d.PtxNameError, "not declared"),
    ("bra NOWHERE;", d.PtxNameError, "not declared"),
    ("bra %r1;", d.OperandError, "label"),
    ("A: A: ret;", d.PtxNameError, "twice"),
    (".reg .b32 %r1;", d.PtxNameError, "twice"),
    (".reg .b128 %q;", d.UnsupportedDeclarationError, "b128"),
    ("@%r1 ret;", d.OperandError, "guard"),
    ("call missing;", d.PtxNameError, "not declared"),
    ("call outside, (%r1);", d.UnsupportedDeclarationError, "no body"),
    ("call f, (%r1);", d.OperandError, "0 parameters, 1 given"),
]


@pytest.mark.parametrize(("body", "error", "message"), REFUSALS)
def test_refusals(run_body: RunBody, body: str, error: type[d.QgpuPtxError], message: str) -> None:
    declarations = ".func f { ret; }\n.extern .func outside (.param .u32 a);"
    with pytest.raises(error, match=message) as caught:
        run_body(body, [0], declarations=declarations)
    assert caught.value.span is not None
    assert caught.value.span.line > 5


def test_floating_point_functions_do_no_harm_when_unused(run_body: RunBody) -> None:
    declarations = ".func f { .reg .f32 a; add.f32 a, a, a; ret; }"
    assert run_body("st.global.u32 [%rd0], 1;", [0], declarations=declarations) == [1]


ARRAY = array("I", [0])
LAUNCHES = [
    ((None, 1, 1, []), "takes 1 arguments, 0 given"),
    ((None, 1, 1, [2**64]), "does not fit"),
    ((None, 1, 1, [b"123"]), "3 given"),
    ((None, 1, 1, ["text"]), "str is not an int"),
    ((None, 0, 1, [ARRAY]), "positive"),
    ((None, 1, (1, 1, 1, 1), [ARRAY]), "1 to 3"),
    ((None, 1, 2048, [ARRAY]), "1024"),
    (("other", 1, 1, [ARRAY]), "no kernel 'other'"),
]


@pytest.mark.parametrize(("launch", "message"), LAUNCHES)
def test_launches_that_do_not_fit(
    kernel_text: Callable[..., str], launch: tuple[object, ...], message: str
) -> None:
    module = parse_ptx(kernel_text("ret;"))
    with pytest.raises(d.LaunchError, match=message):
        run_ptx(module, *launch)  # type: ignore[arg-type]


def test_a_small_parameter_holds_no_pointer() -> None:
    text = ".version 7.0\n.target sm_75\n.address_size 64\n.entry k(.param .u16 p) { ret; }"
    with pytest.raises(d.LaunchError, match="cannot hold a pointer"):
        run_ptx(parse_ptx(text), "k", 1, 1, [ARRAY])


@pytest.mark.parametrize(("directive", "block"), [(".reqntid 32", 16), (".maxntid 8, 2", 17)])
def test_launch_bounds_are_checked(directive: str, block: int) -> None:
    text = f".version 7.0\n.target sm_75\n.address_size 64\n.entry k() {directive} {{ ret; }}"
    with pytest.raises(d.LaunchError, match="block of"):
        run_ptx(parse_ptx(text), "k", 1, block, [])
