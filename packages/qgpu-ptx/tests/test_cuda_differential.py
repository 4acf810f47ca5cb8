"""CUDA kernels on the interpreter against the same source compiled for the CPU by g++.

The shim makes threads of a loop; so these kernels have no barriers. Both sides get the same
random arrays. Signed overflow wraps on both sides (-fwrapv).
"""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
from qgpu_ptx import cuda_to_ptx, parse_ptx, run_ptx
from qgpu_ptx.cuda_to_ptx import COMPILERS
from qgpu_ptx.ptx_ast import Module

BLOCK, GRID, LENGTH = 32, 2, 60
# Each is the body of a kernel: i is the thread's number, x and y its inputs; it returns an int.
BODIES = {
    "arithmetic": "return x * y + (x - y) * 7 + (x >> 3) - (y << 2);",
    "division": "return x / (y | 1) + x % (y | 1) + (int)((unsigned)x / ((unsigned)y | 1u));",
    "constants": "return x / 7 + y % 10 + (int)((unsigned)x / 13u) + x / -3 + y / 16;",
    "wide": "long long p = (long long)x * y; return (int)(p >> 17) ^ (int)(p / 1000003);",
    "wide_unsigned": "unsigned long long p = (unsigned long long)(unsigned)x * (unsigned)y + i;"
    "return (int)(p % 1000000007ull);",
    "shift64": "unsigned long long p = ((unsigned long long)x << 32) | (unsigned)y;"
    "p = (p << (i & 63)) | (p >> ((64 - i) & 63)); return (int)(p >> 32) ^ (int)p;",
    "narrow": "signed char a = (signed char)x; unsigned short b = (unsigned short)y;"
    "short c = (short)(a * b); return c + a + b + (unsigned char)(x >> 8);",
    "branches": "if (x < 0) return y > 0 ? x : -x; if ((x & 3) == 2) return y; return x ^ y;",
    "gcd": "unsigned a = x & 0xffff, b = y & 0xffff;"
    "while (b) { unsigned t = a % b; a = b; b = t; } return (int)a;",
    "collatz": "unsigned n = (x & 0xfff) + 1; int steps = 0;"
    "while (n != 1 && steps < 300) { n = n & 1 ? 3 * n + 1 : n / 2; ++steps; } return steps;",
    "switch": "switch (x & 7) { case 0: return y; case 1: return -y; case 2: return y * 3;"
    "case 3: return y >> 1; case 4: return y & 255; case 6: return ~y; default: return 0; }",
    "local_array": "int t[8]; for (int j = 0; j < 8; ++j) t[(x + j) & 7] = y >> j;"
    "int s = 0; for (int j = 0; j < 8; ++j) s = s * 3 + t[(y + j * 3) & 7]; return s;",
    "hash": "unsigned h = 2166136261u; for (int j = 0; j < 4; ++j)"
    "{ h ^= (x >> 8 * j) & 255; h *= 16777619u; h = (h << 5) | (h >> 27); } return (int)(h ^ y);",
    "bits": "unsigned a = x, b = y; return __builtin_popcount(a) * 100 + (int)((a & 0xf0) >> 4)"
    "+ (int)(((int)(b << 9)) >> 20);",
    "minmax": "int a = x < y ? x : y; unsigned b = (unsigned)x > (unsigned)y ? x : y;"
    "long long c = (long long)x < (long long)y * 3 ? x : y; return a + (int)b + (int)c;",
    "call": "return ackermann(x & 1, y & 3) + ackermann(2, x & 1);",
}
DEVICE = """
extern "C" __device__ __noinline__ int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
"""


def cuda_source() -> str:
    text = DEVICE
    for name, body in BODIES.items():
        body = body.replace("__builtin_popcount", "POPC")
        text += (
            f"static __device__ int f_{name}(int i, int x, int y) {{ {body} }}\n"
            f'extern "C" __global__ void k_{name}(int *out, const int *a, const int *b, int n) {{\n'
            "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            f"    if (i < n) out[i] = f_{name}(i, a[i], b[i]);\n}}\n"
        )
    return text


SHIM = """
#define __global__
#define __device__
#define __noinline__ __attribute__((noinline))
#define POPC __builtin_popcount
struct Index { unsigned x; };
static Index threadIdx, blockIdx, blockDim;
#include "kernels.inc"
typedef void (*Kernel)(int *, const int *, const int *, int);
extern "C" void launch(Kernel k, unsigned grid, unsigned block, int *o, int *a, int *b, int n) {
    blockDim.x = block;
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < block; ++threadIdx.x)
            k(o, a, b, n);
}
"""
Cpu = Callable[[str, list[int], list[int]], list[int]]


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> Cpu:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("cpu")
    (folder / "kernels.inc").write_text(cuda_source())
    (folder / "shim.cpp").write_text(SHIM)
    library = folder / "kernels.so"
    command = ["g++", "-O1", "-fwrapv", "-shared", "-fPIC", "-w", str(folder / "shim.cpp")]
    subprocess.run([*command, "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))

    def run(name: str, a: list[int], b: list[int]) -> list[int]:
        words = ctypes.c_int * LENGTH
        out = words()
        kernel = ctypes.cast(loaded[f"k_{name}"], ctypes.c_void_p)
        loaded.launch(kernel, GRID, BLOCK, out, words(*a), words(*b), LENGTH)
        return list(out)

    return run


@pytest.fixture(scope="module", params=[compiler.name for compiler in COMPILERS])
def module(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Module:
    compiler = next(c for c in COMPILERS if c.name == request.param)
    if compiler.version() is None:
        pytest.skip(f"{compiler.name} is not installed")
    path: Path = tmp_path_factory.mktemp("gpu") / "kernels.cu"
    path.write_text("#define POPC __popc\n" + cuda_source())
    return parse_ptx(cuda_to_ptx(path, compiler=compiler.name).text, "kernels.ptx")


@pytest.mark.parametrize("name", sorted(BODIES))
def test_interpreter_equals_the_cpu(module: Module, cpu: Cpu, name: str) -> None:
    rng = random.Random(name)
    special = [0, 1, -1, 2**31 - 1, -(2**31), 7, -8]
    values = [
        [rng.choice([rng.randint(-(2**31), 2**31 - 1), rng.randint(-50, 50), rng.choice(special)])
         for _ in range(LENGTH)]
        for _ in range(2)
    ]  # fmt: skip
    a, b = (array("i", column) for column in values)
    outcome = run_ptx(module, f"k_{name}", GRID, BLOCK, [array("i", [0] * LENGTH), a, b, LENGTH])
    assert list(outcome[0]) == cpu(name, *values)
