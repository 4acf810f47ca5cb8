"""`import qgpu`: kernels as functions, arrays that stay in the state, and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import qgpu
from qgpu_run.engines.engine import Prediction
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.errors import RequestError
from qgpu_run.launch_request import LaunchRequest

ROOT = Path(__file__).resolve().parents[3]

SOURCE = r"""
extern "C" __global__ void axpy(const int* x, int* y, int a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] += a * x[i];
}
extern "C" __global__ void narrow(unsigned char* t, short* s, long long* w, int n) {
  int i = threadIdx.x;
  if (i < n) { t[i] ^= 0x20; s[i] = s[i] * -2; w[i] += w[i] << 33; }
}
extern "C" __global__ void swap(int* a, int* b) {
  int i = threadIdx.x, t = a[i];
  a[i] = b[i];
  b[i] = t;
}
"""
MODULE = qgpu.RawModule(SOURCE)


@pytest.fixture
def small() -> Iterator[qgpu.Device]:
    with qgpu.Device(profile="small", engine="interpreter") as device:
        yield device


@pytest.fixture(scope="module")
def nano(nano_model: Path) -> qgpu.Device:
    return qgpu.Device(engine="sparse", model=nano_model)


def test_numpy_arrays_are_written_in_place(small: qgpu.Device) -> None:
    text = np.frombuffer(b"Hello World!", dtype=np.uint8).copy()
    shorts = np.arange(24, dtype=np.int16)[::2]
    longs = np.arange(12, dtype=np.int64) - 4
    wanted = longs.copy()
    wanted[:11] += wanted[:11] << 33
    MODULE.get_function("narrow")(1, 16, (text, shorts, longs, np.int32(11)))
    assert text.tobytes() == b"hELLO\x00wORLD!"
    assert shorts.tolist() == [-4 * i for i in range(11)] + [22]
    assert longs.tolist() == wanted.tolist()


def test_several_launches_on_a_model(nano: qgpu.Device) -> None:
    x, y = np.arange(8, dtype=np.int32), np.full(8, 7, dtype=np.int32)
    axpy, swap = MODULE.get_function("axpy"), MODULE.get_function("swap")
    with nano:
        on_x, on_y = qgpu.asarray(x), qgpu.asarray(y)
        first = axpy((2,), (4,), (on_x, on_y, -3))
        again = axpy((2,), (4,), (on_x, on_y, -3))
        assert on_y.get().tolist() == (y - 6 * x).tolist()
        assert first.min_margin == again.min_margin == 16
        # What is left to send: what starts the CTAs.
        assert again.setup_tokens < first.setup_tokens / 4
        # Another program in the same state, and back, with other arrays beside.
        swap(1, 8, (on_x, on_y))
        assert on_x.get().tolist() == (y - 6 * x).tolist()
        assert on_y.get().tolist() == x.tolist()
        host = y.copy()
        axpy(2, 4, (on_y, host, 2))
        assert host.tolist() == (y + 2 * x).tolist()
        # Words that are to be 0 again are sent as well.
        on_x.set(0)
        axpy(2, 4, (on_x, on_y, 5))
        assert on_y.get().tolist() == x.tolist()
        assert on_x.get().tolist() == [0] * 8


def test_several_sms_on_a_model(nano_model: Path) -> None:
    with qgpu.Device(engine="sparse", model=nano_model, sms=4):
        x, y = qgpu.asarray(range(8)), qgpu.zeros(8)
        for _ in range(3):
            MODULE.get_function("axpy")(4, 2, (x, y, 5))
        assert y.get().tolist() == [15 * i for i in range(8)]


def test_a_fault_leaves_device_arrays_as_they_were(nano: qgpu.Device) -> None:
    axpy = MODULE.get_function("axpy")
    with nano:
        x, y = qgpu.asarray(range(8)), qgpu.zeros(8)
        axpy(2, 4, (x, y, 1))
        with pytest.raises(qgpu.KernelFaultError, match=r"kernel\.cu:4"):
            axpy(40, 4, (x, y, 1))
        assert y.get().tolist() == list(range(8))
        axpy(2, 4, (x, y, 1))
        assert y.get().tolist() == [2 * i for i in range(8)]


def test_words_are_given_back(small: qgpu.Device) -> None:
    for _ in range(20):
        large = qgpu.zeros(900)
        assert large.address == 16
        del large
    kept = qgpu.zeros(900)
    with pytest.raises(qgpu.MachineLimitError, match="no place for an array of 800 bytes"):
        qgpu.zeros(200)
    assert len(kept) == 900


def test_a_launch_that_is_refused_gives_its_words_back(small: qgpu.Device) -> None:
    x = np.zeros(400, dtype=np.int32)
    for _ in range(5):
        with pytest.raises(qgpu.MachineLimitError):
            MODULE.get_function("axpy")(1, 999, (x, x, 1))
    assert small.pool.end == 16


def test_ptx_and_options(small: qgpu.Device) -> None:
    ptx = (ROOT / "kernels" / "elementwise" / "vector_add.ptx").read_text()
    a, b, c = (np.arange(4, dtype=np.int32) for _ in range(3))
    qgpu.RawKernel(ptx, "vector_add")(1, 4, (a, b, c, 4))
    assert c.tolist() == [0, 2, 4, 6]
    source = 'extern "C" __global__ void k(unsigned* p) { p[threadIdx.x] = N; }'
    out = np.zeros(2, dtype=np.uint32)
    qgpu.RawKernel(source, "k", options=("-DN=17",))(1, (2, 1), (out,))
    assert out.tolist() == [17, 17]


def test_the_same_array_twice_and_read_only_ones(small: qgpu.Device) -> None:
    x = np.arange(4, dtype=np.int32)
    axpy = MODULE.get_function("axpy")
    axpy(1, 4, (x, x, 2))
    assert x.tolist() == [0, 3, 6, 9]
    with pytest.raises(qgpu.LaunchError, match="overlaps"):
        axpy(1, 2, (x[:3], x[1:], 2))
    x.flags.writeable = False
    axpy(1, 4, (x, x.copy(), 2))
    with pytest.raises(qgpu.LaunchError, match="read-only"):
        axpy(1, 4, (x.copy(), x, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("x, y", "takes 3 arguments, 2 given"),
        ("x, y.astype(np.int16), 1", "'y' points to s32, an array of int16"),
        ("x.astype(np.float32), y, 1", "'x' holds float32"),
        ("x, y, 1.5", "'a' is a float"),
        ("x, 3, 1", "'y' is a pointer"),
        ("x, y, x", "'a' is one number"),
        ("x, y, 1 << 31", "'a' is 2147483648, outside"),
        ("x, y, np.int64(1)", "'a' has 4 bytes, int64 was given"),
    ],
)
def test_wrong_arguments(small: qgpu.Device, arguments: str, message: str) -> None:
    x = y = np.zeros(4, dtype=np.int32)
    given = eval(f"({arguments},)", {"np": np, "x": x, "y": y})
    with pytest.raises(qgpu.LaunchError, match=re.escape(message)):
        MODULE.get_function("axpy")(1, 4, given)


def test_other_wrong_launches(small: qgpu.Device) -> None:
    x = np.zeros(4, dtype=np.int32)
    with pytest.raises(qgpu.LaunchError, match="no kernel 'nothing'"):
        MODULE.get_function("nothing")(1, 1)
    with pytest.raises(qgpu.LaunchError, match="grid is 0"):
        MODULE.get_function("axpy")(0, 1, (x, x, 1))
    with pytest.raises(qgpu.CompileError, match=r"kernel\.cu"):
        qgpu.RawKernel('extern "C" __global__ void f() { int x = ; }', "f")(1, 1)
    with pytest.raises(qgpu.UnsupportedError, match=r"f32"):
        qgpu.RawKernel('extern "C" __global__ void f(float* x) { *x *= 2; }', "f")(1, 1, (x,))
    endless = 'extern "C" __global__ void f(volatile int* x) { while (*x == 0) {} }'
    with (
        qgpu.Device(profile="small", engine="interpreter", max_tokens=99) as other,
        pytest.raises(qgpu.TokenLimitError),
    ):
        qgpu.RawKernel(endless, "f")(1, 1, (x,))
    with pytest.raises(qgpu.LaunchError, match="another device"):
        MODULE.get_function("axpy")(1, 4, (qgpu.zeros(4, device=other), x, 1))
    with pytest.raises(qgpu.ModelError, match=r"there is no .*nowhere"):
        qgpu.Device(profile="small", model=Path("/nowhere"), engine="sparse")


def test_the_code_in_the_documentation_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python_api.md").read_text(), re.S)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    # The same calls, without the model that is the default.
    with qgpu.Device(profile="default", engine="interpreter"):
        for block in blocks:
            exec(block, names)


def test_an_engine_that_is_looked_at() -> None:
    seen: list[str] = []

    class Counting(InterpreterEngine):
        def feed(self, tokens: Sequence[int]) -> Prediction:
            seen.append("token")
            return super().feed(tokens)

    @contextmanager
    def around(request: LaunchRequest) -> Iterator[None]:
        seen.append(request.kernel)
        yield
        seen.append("ended")

    device = qgpu.Device(
        "small",
        "interpreter",
        wrap_engine=lambda engine: Counting(engine.config),
        around_launch=around,
    )
    kernel = qgpu.RawKernel('extern "C" __global__ void f(int* x) { x[0] += 1; }', "f")
    x = np.array([1], np.int32)
    assert kernel(1, 1, (x,), device=device).exact is None
    assert (seen[0], seen[1], seen[-1], int(x[0])) == ("f", "token", "ended", 2)
    device.set_check(True)
    assert kernel(1, 1, (x,), device=device).exact is True
    # Used past the device, which is told.
    device.engine.reset()
    device.reset()
    assert kernel(1, 1, (x,), device=device).exact is True
    assert int(x[0]) == 4
    with pytest.raises(RequestError, match="sms=1"):
        qgpu.Device("small", "interpreter", sms=2, wrap_engine=lambda engine: engine)
