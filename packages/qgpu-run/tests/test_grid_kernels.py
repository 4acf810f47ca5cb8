"""CTAs at the same time: the same results as one after another, or a refusal that says why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from qgpu_isa.interpreter import Launch, run_launch
from qgpu_isa.machine_config import DEFAULT, NANO
from qgpu_isa.text_to_image import text_to_image
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_run.check_rows import guard_rows, initial_memory, run_request_rows
from qgpu_run.engines.engine import Prediction
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.engines.sparse.engine import SparseEngine, load_sparse_engine
from qgpu_run.engines.transformers_engine import TransformersEngine
from qgpu_run.errors import CtaDependenceError
from qgpu_run.kernel_to_launch import kernel_to_request
from qgpu_run.launch_request import LaunchRequest, OutputArray
from qgpu_run.load_model import load_model
from qgpu_run.run_request import run_request

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
INDEPENDENT = [
    "blocks/block_3d", "blocks/dynamic_shared", "blocks/grid_2d", "blocks/many_blocks",
    "elementwise/grid_stride_square", "elementwise/saxpy", "matrix/matmul_tiled",
    "matrix/transpose_shared", "reduce/row_max", "stencil/stencil_1d",
]  # fmt: skip
DEPENDENT = {
    "atomics/last_block": "",
    "histogram/histogram_global": "bins[",
    "histogram/histogram_shared": "bins[",
    "reduce/atomic_sum": "sum[0]",
}

CHAIN = """\
.machine nano
.program chain
block 0:
  A0  lea2  ctaid, #{read}
  MEM ld    -> r0
  branch 1
block 1:
  A0  lea2  ctaid, #{write}
  MEM st    r0
  branch exit
"""
"""CTA c copies the word at `read` + 4 * c to `write` + 4 * c."""


def chain(read: int, write: int, ctas: int = 3) -> LaunchRequest:
    image = text_to_image(CHAIN.format(read=read, write=write), "chain")
    data = OutputArray("data", "s16", 64, 16)
    launch = Launch(image, {16 + i: 5 + i for i in range(8)}, 1, ctas)
    return LaunchRequest(launch, (data,), arrays=(data,), kernel="chain")


def request_of(name: str) -> LaunchRequest:
    return kernel_to_request(KERNELS / f"{name}.ptx", LaunchOptions(), DEFAULT)


def test_every_kernel_with_several_ctas_is_in_a_list() -> None:
    named = {*INDEPENDENT, *DEPENDENT}
    for spec in KERNELS.glob("*/*.toml"):
        grid = next(line for line in spec.read_text().splitlines() if line.startswith("grid"))
        several = set(grid.partition("=")[2].strip(" []").replace(" ", "").split(",")) != {"1"}
        assert several == (f"{spec.parent.name}/{spec.stem}" in named)


@pytest.mark.parametrize("name", INDEPENDENT)
@pytest.mark.parametrize("sms", [3, 64])
def test_kernels_give_what_the_serial_run_gives(name: str, sms: int) -> None:
    request, engine = request_of(name), InterpreterEngine(DEFAULT)
    outcome = run_request(request, engine, sms=sms, check=True)
    assert outcome.problems == []
    assert (outcome.exact, outcome.expected_ok, outcome.status) == (True, True, 0)
    serial, _ = run_launch(request.launch)
    end = request.private.start or DEFAULT.global_words
    merged = run_request_rows(request, engine, sms).memory(initial_memory(request))
    assert merged[:end] == serial.state.memory[:end]


@pytest.mark.parametrize("name", DEPENDENT)
def test_kernels_whose_ctas_share_words_are_refused(name: str) -> None:
    request = request_of(name)
    outcome = run_request(request, InterpreterEngine(DEFAULT), sms=2)
    assert outcome.status == 1
    assert outcome.outputs == {}
    with pytest.raises(CtaDependenceError, match="one after the other") as caught:
        guard_rows(request)
    first = caught.value.words[0]
    assert caught.value.kernel == name.partition("/")[2]
    assert (first.first, first.second) == (0, 1)
    assert DEPENDENT[name] in first.place


def test_a_word_that_a_later_cta_reads_is_refused() -> None:
    # CTA 1 reads word 17, which CTA 0 writes.
    with pytest.raises(CtaDependenceError, match="written by CTA 0, read by CTA 1") as caught:
        guard_rows(chain(64, 68))
    # Two elements of 16 bits lie in the word.
    assert caught.value.words[0].place == "data[2..3]"


def test_a_word_that_a_later_cta_writes_is_what_it_was() -> None:
    # CTA 0 reads word 17, which CTA 1 writes: one after the other it sees the old one, too.
    request = chain(68, 64)
    outcomes = [run_request(request, InterpreterEngine(NANO), sms=sms) for sms in (1, 3)]
    assert outcomes[0].outputs == outcomes[1].outputs
    assert outcomes[1].problems == []


@pytest.mark.skipif(sys.platform != "linux", reason="NVRTC is only installed on Linux")
def test_local_memory_is_each_ctas_own(tmp_path: Path) -> None:
    path = tmp_path / "local.cu"
    path.write_text(
        'extern "C" __global__ void local(const int* x, int* y) {\n'
        "  int t[4], i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  for (int k = 0; k < 4; ++k) t[(x[i] + k) & 3] = k;\n"
        "  y[i] = t[x[i + 1] & 3];\n}\n"
    )
    arguments = ("x=1,2,3,4,5,6,7,8,9", "y=zeros(8)")
    options = LaunchOptions(grid="2", block="4", arguments=arguments)
    request = kernel_to_request(path, options, DEFAULT)
    assert len(request.private) >= 16
    outcomes = [run_request(request, InterpreterEngine(DEFAULT), sms=sms) for sms in (1, 2)]
    assert outcomes[0].outputs == outcomes[1].outputs
    assert outcomes[1].outputs["y"] == [1] * 8


def test_a_fault_ends_the_launch(faulty: Launch) -> None:
    launch = Launch(faulty.image, {}, 5, 4)
    engine = InterpreterEngine(launch.config)
    for check in (False, True):
        outcome = run_request(LaunchRequest(launch), engine, sms=2, check=check)
        assert outcome.status == 1
        assert "CTA 0" in outcome.problems[0]


def test_an_endless_launch_ends(endless: Launch) -> None:
    launch = Launch(endless.image, {}, 2, 2)
    engine = InterpreterEngine(launch.config)
    outcome = run_request(LaunchRequest(launch), engine, sms=2, max_tokens=50)
    assert outcome.status == 1
    assert "--max-tokens" in outcome.problems[0]


class _LyingRows(InterpreterEngine):
    """Predicts something else once, on a row."""

    def feed_rows(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Prediction]:
        honest = super().feed_rows(rows, tokens)
        wrong = Prediction(0, 3.0)
        return [wrong if row == 1 else h for row, h in zip(rows, honest, strict=True)]


class _LeakingRows(InterpreterEngine):
    """Leaves something in word 30 on every row."""

    def read_memory(self, row: int = 0) -> list[int]:
        words = super().read_memory(row)
        return [*words[:30], row + 1, *words[31:]] if self._rows else words


def test_the_check_finds_a_wrong_token_and_the_merge_a_word_written_twice() -> None:
    request = chain(64, 80)
    outcome = run_request(request, _LyingRows(NANO), sms=3, check=True)
    assert outcome.exact is False
    assert "CTA 1" in outcome.problems[0]
    outcome = run_request(request, _LeakingRows(NANO), sms=3)
    assert outcome.status == 1
    assert "word 30" in outcome.problems[0]


@pytest.fixture(scope="module")
def sparse(nano_model: Path) -> SparseEngine:
    return load_sparse_engine(nano_model)


NANO_GRIDS = [
    ("elementwise/grid_stride_square", ("n=12", "x=1,-2,3,4,5,6,7,8,9,10,11,12", "y=zeros(12)")),
    (
        "elementwise/saxpy",
        ("a=-7", "n=11", "x=1,2,3,4,5,6,7,8,9,10,11", "y=zeros(11)"),
    ),
    ("elementwise/vector_add", ("n=10", "a=1,2,3,4,5,6,7,8,9,10", "b=zeros(10)", "c=zeros(10)")),
]


@pytest.mark.parametrize(("name", "arguments"), NANO_GRIDS)
@pytest.mark.parametrize("sms", [2, 3])
def test_the_sparse_engine_decodes_rows_exactly(
    sparse: SparseEngine, name: str, arguments: tuple[str, ...], sms: int
) -> None:
    options = LaunchOptions(grid="3", block="4", arguments=arguments)
    request = kernel_to_request(KERNELS / f"{name}.ptx", options, NANO)
    outcome = run_request(request, sparse, sms=sms, check=True)
    assert outcome.problems == []
    assert outcome.exact is True
    assert outcome.outputs == run_request(request, sparse, check=True).outputs


@pytest.mark.slow
def test_transformers_decodes_rows_exactly(nano_model: Path) -> None:
    engine = TransformersEngine(load_model(nano_model))
    name, arguments = NANO_GRIDS[2]
    options = LaunchOptions(grid="3", block="4", arguments=arguments)
    request = kernel_to_request(KERNELS / f"{name}.ptx", options, NANO)
    for sms in (2, 3):
        outcome = run_request(request, engine, sms=sms, check=True)
        assert outcome.problems == []
        assert outcome.exact is True
