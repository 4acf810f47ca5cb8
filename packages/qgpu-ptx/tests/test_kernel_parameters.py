"""Names and types of parameters, read from CUDA and PTX; what is not plain is left open."""

from __future__ import annotations

import pytest
from qgpu_ptx.diagnostics import LaunchArgumentError
from qgpu_ptx.kernel_parameters import Parameter, kernel_parameters
from qgpu_ptx.launch_arguments import make_arguments, parse_argument
from qgpu_ptx.launch_spec import ArrayArgument, ScalarArgument
from qgpu_ptx.ptx_ast import Function
from qgpu_ptx.source_to_ast import parse_ptx

CU = """
__device__ int twice(int x) { return 2 * x; }
extern "C" __global__ void __launch_bounds__(128, 2) g(const int* __restrict__ src, /* to */
    unsigned char *dst, unsigned long long n, // how many
    short table[16])
{ dst[0] = twice(src[n]); }
__global__ void f(size_t n) {}
"""


def entry(name: str, *parameters: str) -> Function:
    declared = ", ".join(f".param .u64 {p}" for p in parameters)
    text = f".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry {name}({declared})\n"
    return parse_ptx(text + "{ ret; }\n").entries[0]


def numbered(name: str, count: int) -> Function:
    return entry(name, *(f"{name}_param_{i}" for i in range(count)))


def test_cuda_declarations() -> None:
    assert kernel_parameters(numbered("g", 4), CU) == (
        Parameter("src", "s32", True),
        Parameter("dst", "u8", True),
        Parameter("n", "u64", False),
        Parameter("table", "s16", True),
    )
    assert kernel_parameters(numbered("_Z1fm", 1), CU) == (Parameter("n", None, False),)
    assert kernel_parameters(numbered("f", 0), "__global__ void f() {}") == ()


@pytest.mark.parametrize(
    "source",
    [
        "__global__ void g(int a) {}",
        "template <class T> __global__ void f(vec<T> a) {}",
        "__global__ void f(int (*a)[4]) {}",
        "__global__ void f(int a, int b) {}",
        "__global__ void f(int",
        "",
    ],
)
def test_what_is_not_plain_is_left_open(source: str) -> None:
    assert kernel_parameters(numbered("f", 1), source) is None


def test_ptx_entries() -> None:
    names = (Parameter("data", None, None), Parameter("n", None, None))
    assert kernel_parameters(entry("h", "data", "n"), None) == names
    assert kernel_parameters(numbered("_Z1kPi", 1), None) is None


def test_arguments_go_to_their_parameters() -> None:
    parameters = (Parameter("a", "u8", True), Parameter("n", "s64", False))
    given = [parse_argument("n=-1"), parse_argument("a=1,2")]
    assert make_arguments(given, parameters) == (
        ArrayArgument("a", "u8", (1, 2), output=True),
        ScalarArgument("n", "s64", -1),
    )
    for texts, message in [
        (["a=1,2", "m=1"], "--arg m: the kernel has no such parameter"),
        (["a=1,2"], "no value for n"),
        (["a=1", "n=1"], "--arg a: the kernel takes an array"),
        (["a=1,2", "n:s32=1"], "--arg n is s64, not s32"),
        (["a=1,256", "n=1"], "256 does not fit u8"),
    ]:
        with pytest.raises(LaunchArgumentError, match=message):
            make_arguments([parse_argument(text) for text in texts], parameters)
