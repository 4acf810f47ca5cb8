"""Names and types of parameters, read from CUDA and PTX; what is not plain is left open."""

from __future__ import annotations

import pytest
from qgpu_ptx.launch_spec import ArrayArgument, ScalarArgument
from qgpu_run.errors import RequestError
from qgpu_run.kernel_parameters import Parameter, kernel_parameters
from qgpu_run.launch_arguments import make_arguments, parse_argument

CU = """
__device__ int twice(int x) { return 2 * x; }
extern "C" __global__ void __launch_bounds__(128, 2) g(const int* __restrict__ src, /* to */
    unsigned char *dst, unsigned long long n, // how many
    short table[16])
{ dst[0] = twice(src[n]); }
"""

PTX = """
.visible .entry h(.param .u64 data, .param .u32 n)
{ ret; }
.visible .entry _Z1kPi(
	.param .u64 .ptr .align 1 _Z1kPi_param_0
)
{ ret; }
"""


def test_cuda_declarations() -> None:
    assert kernel_parameters(CU, ".cu", None) == (
        Parameter("src", "s32", True),
        Parameter("dst", "u8", True),
        Parameter("n", "u64", False),
        Parameter("table", "s16", True),
    )
    assert kernel_parameters("__global__ void f() {}", ".cu", "f") == ()
    unknown = kernel_parameters("__global__ void f(size_t n) {}", ".cu", None)
    assert unknown == (Parameter("n", None, False),)


@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        ("__global__ void f(int a) {} __global__ void g(int b) {}", None),
        ("__global__ void f(int a) {}", "g"),
        ("template <class T> __global__ void f(vec<T> a) {}", None),
        ("__global__ void f(int (*a)[4]) {}", None),
        ("__global__ void f(int", None),
        ("", None),
    ],
)
def test_what_is_not_plain_is_left_open(source: str, kernel: str | None) -> None:
    assert kernel_parameters(source, ".cu", kernel) is None


def test_ptx_entries() -> None:
    assert kernel_parameters(PTX, ".ptx", "h") == (
        Parameter("data", None, None),
        Parameter("n", None, None),
    )
    assert kernel_parameters(PTX, ".ptx", "_Z1kPi") is None
    assert kernel_parameters(PTX, ".ptx", None) is None


def test_arguments_go_to_their_parameters() -> None:
    parameters = (Parameter("a", "u8", True), Parameter("n", "s64", False))
    given = [parse_argument("n=-1"), parse_argument("a=1,2")]
    assert make_arguments(given, parameters) == (
        ArrayArgument("a", "u8", (1, 2), output=True),
        ScalarArgument("n", "s64", -1),
    )
    for texts, message in [
        (["a=1,2", "m=1"], "no argument 'm'; it has a, n"),
        (["a=1,2"], "no value for n"),
        (["a=1", "n=1"], "'a' is an array"),
        (["a=1,2", "n:s32=1"], "'n' is s64, not s32"),
        (["a=1,256", "n=1"], "256 does not fit u8"),
    ]:
        with pytest.raises(RequestError, match=message):
            make_arguments([parse_argument(text) for text in texts], parameters)
