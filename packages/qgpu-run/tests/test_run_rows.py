"""CTAs side by side: the results of one after the other, or a refusal."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import DEFAULT, NANO
from qgpu_isa.text_to_image import text_to_image
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_run.check_rows import guard_rows, run_request_rows
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.engines.sparse.engine import SparseEngine, load_sparse_engine
from qgpu_run.engines.sparse.row_groups import row_groups
from qgpu_run.engines.transformers_engine import TransformersEngine
from qgpu_run.errors import (
    CtaDependenceError,
    KernelFaultError,
    RequestError,
    TokenLimitError,
)
from qgpu_run.kernel_to_launch import kernel_to_request
from qgpu_run.launch import run_on_engine
from qgpu_run.launch_request import LaunchRequest, OutputArray
from qgpu_run.load_model import load_model
from qgpu_run.run_request import run_request

from .programs import COUNT

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
DEPENDENT = {
    "atomics/last_block": "done[0]",
    "histogram/histogram_global": "bins[0]",
    "histogram/histogram_shared": "bins[0]",
    "reduce/atomic_sum": "sum[0]",
}
INDEPENDENT = [
    "blocks/block_3d", "blocks/dynamic_shared", "blocks/grid_2d", "blocks/many_blocks",
    "elementwise/grid_stride_square", "elementwise/saxpy", "matrix/matmul_tiled",
    "matrix/transpose_shared", "reduce/row_max", "stencil/stencil_1d",
]  # fmt: skip


def read(name: str, config=DEFAULT) -> LaunchRequest:
    return kernel_to_request(KERNELS / f"{name}.ptx", LaunchOptions(), config)


@pytest.fixture
def count() -> LaunchRequest:
    launch = Launch(text_to_image(COUNT, "count"), {50: 9}, 3, 5)
    array = OutputArray("words", "s32", 64, 5)
    return LaunchRequest(launch, (array,), {"words": (7, 8, 9, 10, 11)}, "count", (array,))


@pytest.fixture(scope="module")
def sparse(nano_model: Path) -> SparseEngine:
    return load_sparse_engine(nano_model)


def test_the_kernels_with_several_ctas_are_known() -> None:
    several = [
        path.relative_to(KERNELS).with_suffix("").as_posix()
        for path in sorted(KERNELS.glob("*/*.toml"))
        if np.prod(next(eval(line[7:]) for line in path.open() if line.startswith("grid = "))) > 1
    ]
    assert sorted(several) == sorted([*DEPENDENT, *INDEPENDENT])


@pytest.mark.parametrize("name", INDEPENDENT)
def test_results_are_those_of_one_after_the_other(name: str) -> None:
    request = read(name)
    outcome = run_request(request, InterpreterEngine(DEFAULT), check=True, sms=3)
    assert (outcome.exact, outcome.expected_ok, outcome.problems) == (True, True, [])


@pytest.mark.parametrize(("name", "place"), DEPENDENT.items())
def test_dependent_ctas_are_refused(name: str, place: str) -> None:
    request = read(name)
    with pytest.raises(CtaDependenceError) as caught:
        guard_rows(request)
    first = caught.value.words[0]
    assert (caught.value.kernel, first.place) == (request.kernel, place)
    assert (first.first, first.second, first.stale) == (0, 1, True)
    outcome = run_request(request, InterpreterEngine(DEFAULT), sms=2)
    assert outcome.status == 1
    assert f"{place} (word {first.address}): written by CTA 0, read by CTA 1" in outcome.to_text()
    assert "--sms 1" in outcome.to_text()


@pytest.mark.parametrize("name", ["histogram/histogram_global", "reduce/atomic_sum"])
def test_the_host_sees_by_itself_that_two_ctas_changed_a_word(name: str) -> None:
    engine = InterpreterEngine(DEFAULT)
    outcome = run_request(read(name), engine, sms=3, assume_independent=True)
    assert outcome.status == 1
    assert "written by CTA 0 and CTA 1" in outcome.to_text()


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 9])
@pytest.mark.parametrize("engine", ["interpreter", "sparse"])
def test_waiting_ctas_take_rows_over(
    count: LaunchRequest, request: pytest.FixtureRequest, engine: str, rows: int
) -> None:
    made = InterpreterEngine(NANO) if engine == "interpreter" else request.getfixturevalue("sparse")
    result = run_request_rows(count, made, rows)
    assert [dict(words) for words in result.changes] == [{16 + i: 7 + i} for i in range(5)]
    assert result.memory([0] * 128)[16:22] == [7, 8, 9, 10, 11, 0]
    assert result.trace == run_request_rows(count, made, 3).trace


def test_sparse_rows_are_checked_token_by_token(count: LaunchRequest, sparse: SparseEngine) -> None:
    outcome = run_request(count, sparse, check=True, sms=3)
    assert (outcome.exact, outcome.expected_ok, outcome.problems) == (True, True, [])
    assert outcome.min_margin == 16
    serial = run_request(count, sparse, check=True)
    assert serial.outputs == outcome.outputs


def test_transformers_rows_are_batch_rows(count: LaunchRequest, nano_model: Path) -> None:
    engine = TransformersEngine(load_model(nano_model))
    outcome = run_request(count, engine, check=True, sms=3)
    assert (outcome.exact, outcome.expected_ok, outcome.problems) == (True, True, [])
    assert outcome.min_margin == 16


def test_a_kernel_on_nano(sparse: SparseEngine) -> None:
    request = read("elementwise/grid_stride_square", NANO)
    outcome = run_request(request, sparse, check=True, sms=2)
    assert (outcome.exact, outcome.expected_ok, outcome.problems) == (True, True, [])


def test_private_words_are_neither_a_conflict_nor_kept(count: LaunchRequest) -> None:
    same = COUNT.replace("lea2  ctaid, #64", "add  zero, #64")
    launch = dataclasses.replace(count.launch, image=text_to_image(same, "count"))
    request = dataclasses.replace(count, launch=launch, expected={}, private=range(16, 17))
    outcome = run_request(request, InterpreterEngine(NANO), check=True, sms=5)
    assert outcome.status == 0
    assert outcome.outputs == {"words": [0] * 5}


def test_the_fault_of_the_first_cta_is_reported(count: LaunchRequest) -> None:
    wild = COUNT.replace("lea2  ctaid, #64", "lea3  r1, #440")
    launch = dataclasses.replace(count.launch, image=text_to_image(wild, "wild"))
    with pytest.raises(KernelFaultError, match="CTA 2") as rows:
        run_request_rows(LaunchRequest(launch), InterpreterEngine(NANO), 5)
    with pytest.raises(KernelFaultError) as serial:
        run_on_engine(launch, InterpreterEngine(NANO))
    assert str(rows.value) == str(serial.value)
    outcome = run_request(
        dataclasses.replace(count, launch=launch), InterpreterEngine(NANO), check=True, sms=5
    )
    assert outcome.problems == [str(serial.value)]
    assert outcome.exact is True


def test_an_endless_kernel_is_stopped(endless: Launch) -> None:
    launch = dataclasses.replace(endless, ctas=3)
    with pytest.raises(TokenLimitError, match="--max-tokens"):
        run_request_rows(LaunchRequest(launch), InterpreterEngine(NANO), 2, max_tokens=50)


def test_a_wrong_token_is_found(count: LaunchRequest, lying) -> None:
    class LyingRows(lying):  # type: ignore[misc, valid-type]
        def feed_rows(self, rows, tokens):
            return [self._lie(p) for p in InterpreterEngine.feed_rows(self, rows, tokens)]

    outcome = run_request(count, LyingRows(at=6), check=True, sms=2)
    assert outcome.exact is False
    assert "differs" in outcome.problems[0]


def test_verify_takes_no_rows(count: LaunchRequest) -> None:
    with pytest.raises(RequestError, match="--verify"):
        run_request(count, InterpreterEngine(NANO), verify=True, sms=2)


def test_the_command_line(invoke) -> None:
    path = KERNELS / "blocks" / "many_blocks.ptx"
    options = ("--engine", "interpreter", "--check", "--json", "--sms", 4)
    status, text, data = invoke("launch", path, *options)
    assert status == 0, text
    assert (data["sms"], data["exact"], data["expected_ok"]) == (4, True, True)
    assert data["guard_seconds"] is not None
    _, _, data = invoke("launch", path, *options, "--assume-independent")
    assert data["guard_seconds"] is None


def test_elements_of_a_word() -> None:
    array = OutputArray("c", "u8", 64, 6)
    assert [array.elements_of_word(a) for a in (15, 16, 17, 18)] == ["", "c[0..3]", "c[4..5]", ""]
    wide = OutputArray("w", "s64", 64, 2)
    assert [wide.elements_of_word(a) for a in (16, 17, 18)] == ["w[0]", "w[0]", "w[1]"]


@pytest.mark.parametrize("count", [1, 3, 16, 17, 64, 70])
def test_groups_of_rows(count: int) -> None:
    rows = list(range(5, 5 + count))
    tokens = [[row % 3, 9][: 1 + row % 2] for row in rows]
    groups = row_groups(rows, tokens, 2)
    assert sorted(place for places, _, _ in groups for place in places) == list(range(count))
    for places, streams, numbers in groups:
        assert len(places) <= 16
        for place in places:
            assert numbers[streams == rows[place]].tolist() == tokens[place]
