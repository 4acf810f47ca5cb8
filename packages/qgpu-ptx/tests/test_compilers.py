"""CUDA compilers: whichever are installed here give PTX that runs; errors carry their place."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest
from click.testing import CliRunner
from qgpu_ptx import cuda_to_ptx, find_compiler, parse_ptx, run_ptx
from qgpu_ptx.cli import main
from qgpu_ptx.compilers.compiler import CudaCompiler, compile_error
from qgpu_ptx.cuda_to_ptx import COMPILERS
from qgpu_ptx.diagnostics import CompilerNotFoundError, CudaCompileError

SOURCE = """\
extern "C" __device__ __noinline__ int fib(int n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
extern "C" __global__ void k(int *out, const int *__restrict__ in, int n) {
    __shared__ int s[32];
    extern __shared__ int more[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = in[i];
    more[threadIdx.x] = 1;
    __syncthreads();
    int v = s[(threadIdx.x + 1) & 31] + more[0];
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, o);
    atomicAdd(&out[32], 1);
    unsigned votes = __ballot_sync(0xffffffffu, i & 1);
    switch (i & 7) {
        case 0: v += 3; break;
        case 1: v *= 5; break;
        case 2: v ^= 8; break;
        case 3: v -= fib(5); break;
        case 5: v += __popc(votes); break;
    }
    if (i < n)
        out[i] = v / n;
}
"""


def expected() -> list[int]:
    total = sum(3 * i + 1 for i in range(32)) % 2**32
    result = []
    for i in range(32):
        v = total
        v = {0: v + 3, 1: v * 5, 2: v ^ 8, 3: v - 5, 5: v + 16}.get(i & 7, v)
        result.append(v // 30 if i < 30 else 0)
    return [*result, 32]


def installed() -> list[CudaCompiler]:
    return [compiler for compiler in COMPILERS if compiler.version() is not None]


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: compiler.name)
def test_compiled_kernel_gives_the_right_results(compiler: CudaCompiler, tmp_path: Path) -> None:
    if compiler.version() is None:
        pytest.skip(f"{compiler.name} is not installed")
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    source = cuda_to_ptx(path, compiler=compiler.name)
    assert (source.compiler, source.path) == (compiler.name, path)
    assert source.version[0].isdigit()
    module = parse_ptx(source.text, "k.ptx")
    assert parse_ptx(str(module)) == module
    args = [array("i", [0] * 33), array("i", [3 * i for i in range(32)]), 30]
    outcome = run_ptx(module, "k", 1, 32, args, dynamic_shared_bytes=128)
    assert list(outcome[0]) == expected()
    assert f"{path.name}" in {Path(name).name for name in module.files.values()}


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: compiler.name)
def test_compile_errors_name_file_and_line(compiler: CudaCompiler, tmp_path: Path) -> None:
    if compiler.version() is None:
        pytest.skip(f"{compiler.name} is not installed")
    path = tmp_path / "bad.cu"
    path.write_text('extern "C" __global__ void k(int *a) {\n    a[0] = missing;\n}\n')
    with pytest.raises(CudaCompileError) as caught:
        cuda_to_ptx(path, compiler=compiler.name)
    error = caught.value
    assert error.span is not None
    assert (error.span.filename, error.span.line) == (str(path), 2)
    assert "missing" in error.message
    assert "bad.cu" in error.log


@pytest.mark.parametrize(
    ("log", "line", "message"),
    [
        ('k.cu(2): error: identifier "x" is undefined\n', 2, 'identifier "x" is undefined'),
        ("/tmp/a/k.cu:2:7: error: use of x\n", 2, "use of x"),
        ("k.cu(1): catastrophic error: cannot open source file\n", 1, "cannot open source file"),
        ("other.h(2): error: bad\n", None, "bad"),
        ("no place at all", None, "cannot compile"),
    ],
)
def test_compiler_logs_are_understood(log: str, line: int | None, message: str) -> None:
    error = compile_error("cc", Path("k.cu"), "one\n  two\n", log)
    assert message in error.message
    assert (error.span.line if error.span else None) == line
    assert log.strip() in error.render()


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: compiler.name)
def test_missing_headers_are_explained(compiler: CudaCompiler, tmp_path: Path) -> None:
    if compiler.version() is None:
        pytest.skip(f"{compiler.name} is not installed")
    path = tmp_path / "k.cu"
    path.write_text('#include <no_such_header.h>\nextern "C" __global__ void k(int *a) {}\n')
    with pytest.raises(CudaCompileError) as caught:
        cuda_to_ptx(path, compiler=compiler.name)
    assert caught.value.span is not None
    assert caught.value.span.line == 1
    assert "a kernel is device code alone" in caught.value.render()


def test_unknown_and_missing_compilers_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompilerNotFoundError, match="nvrtc, nvcc, clang, zig"):
        find_compiler("tcc")
    for compiler in COMPILERS:
        monkeypatch.setattr(type(compiler), "version", lambda self: None)
    with pytest.raises(CompilerNotFoundError, match="pip install ziglang"):
        find_compiler()


def test_the_command_writes_ptx(tmp_path: Path) -> None:
    if not installed():
        pytest.skip("no CUDA compiler is installed")
    path, target = tmp_path / "k.cu", tmp_path / "k.ptx"
    path.write_text(SOURCE)
    result = CliRunner().invoke(main, ["compile", str(path), "-o", str(target)])
    assert result.exit_code == 0
    assert ".entry k(" in target.read_text()
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["k.cu", "k.ptx"]
    result = CliRunner().invoke(main, ["compile", str(path), "-o", str(tmp_path / "no" / "k.ptx")])
    assert result.exit_code == 2
    assert "cannot write" in result.stderr
