"""Helpers shared by the tests, as fixtures: modules in this folder cannot import each other."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import pytest
from qgpu_ptx import parse_ptx, run_ptx

HEADER = ".version 7.0\n.target sm_75\n.address_size 64\n"
REGISTERS = (
    ".reg .b16 %rs<16>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<32>;\n.reg .pred %p<16>;\n"
    "ld.param.u64 %rd0,[p];\ncvta.to.global.u64 %rd0,%rd0;\n"
    "mov.u32 %r0,%tid.x;\nmul.wide.u32 %rd1,%r0,4;\nadd.s64 %rd1,%rd0,%rd1;\n"
)

RunBody = Callable[..., list[int]]


@pytest.fixture
def kernel_text() -> Callable[..., str]:
    """PTX of a kernel k(p): %rd0 is the array, %rd1 the thread's own word of it, %r0 is tid.x."""

    def make(body: str, declarations: str = "") -> str:
        head = f"{HEADER}{declarations}\n.visible .entry k(.param .u64 p)\n{{\n"
        return f"{head}{REGISTERS}{body}\nret;\n}}\n"

    return make


@pytest.fixture
def run_body(kernel_text: Callable[..., str]) -> RunBody:
    """Runs a kernel body on an array of u32 words and returns the array."""

    def run(
        body: str,
        words: Sequence[int] = (0,) * 32,
        block: int | Sequence[int] = 1,
        *,
        grid: int | Sequence[int] = 1,
        declarations: str = "",
        **options: object,
    ) -> list[int]:
        module = parse_ptx(kernel_text(body, declarations), "k.ptx")
        outcome = run_ptx(module, "k", grid, block, [array("I", words)], **options)
        return list(outcome[0])

    return run
