"""A launch whose CTAs several processes share: the outcome of one process, or a clear error."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from types import ModuleType
from typing import Any

import pytest
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import DEFAULT, NANO
from qgpu_isa.text_to_image import text_to_image
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_run.check_rows import run_request_rows
from qgpu_run.engines.interpreter_engine import InterpreterEngine
from qgpu_run.engines.sparse.engine import load_sparse_engine
from qgpu_run.errors import ModelError, RankError, RequestError
from qgpu_run.kernel_to_launch import kernel_to_request
from qgpu_run.launch_request import LaunchRequest, OutputArray
from qgpu_run.local_ranks import run_in_processes
from qgpu_run.outcome import Outcome
from qgpu_run.process_group import VARIABLES, Place, ProcessGroup, place_from_environment
from qgpu_run.ranks import ALONE, own_ctas
from qgpu_run.run_request import run_request

from .programs import COUNT

TESTS = Path(__file__).parent
KERNELS = TESTS.parents[2] / "kernels"
GRID = KERNELS / "elementwise" / "grid_stride_square.ptx"
SECONDS = 240
"""More than any of these processes needs, on cores that are busy as well."""

HEAD = ".machine nano\n.program ranks\n"

SAME_WORD = COUNT.replace("lea2  ctaid, #64", "add  zero, #64")
NEIGHBOUR = (
    HEAD
    + """\
block 0:
  A0  lea2  ctaid, #64
  MEM ld    -> r0
  branch 1
block 1:
  A0  lea2  ctaid, #68
  MEM st    r0
  branch exit
"""
)
"""Each CTA reads what the one before writes."""

WILD_FROM_2 = COUNT.replace("lea2  ctaid, #64", "lea3  r1, #440")
WILD_FROM_3 = COUNT.replace("lea2  ctaid, #64", "lea3  r1, #432")
ENDLESS_BEHIND_A_FAULT = HEAD + (
    "block 0:\n  A1 setltu ctaid, #2 -> p0\n  branch flag A1 ? 1 : 0\n"
    "block 1:\n  A1 setltu ctaid, #1 -> p0\n  branch flag A1 ? 3 : 2\n"
    "block 2:\n  A0 lea2 tid, #4096\n  MEM st tid\n  branch exit\n"
    "block 3:\n  A0 add tid, #1\n  branch exit\n"
)
"""CTA 0 ends, CTA 1 faults, the others never end."""

ENDLESS = HEAD + "block 0:\n  A0 add tid, #1\n  branch 0\n"


def request_of(text: str, ctas: int = 5) -> LaunchRequest:
    launch = Launch(text_to_image(text, "ranks"), {50: 9}, 3, ctas)
    array = OutputArray("words", "s32", 64, 5)
    return LaunchRequest(launch, (array,), {}, "ranks", (array,))


def at_once(request: LaunchRequest, **options: Any) -> Outcome:
    return run_request(request, InterpreterEngine(request.launch.config), **options)


def same(shared: Outcome, one: Outcome) -> None:
    """Compares what does not depend on how many there are, and on time."""
    for name in ("status", "problems", "outputs", "tokens", "exact", "expected_ok", "checks"):
        assert getattr(shared, name) == getattr(one, name), name


# Ranks as threads of this process: what they exchange, and when.


class ThreadGroup(ProcessGroup):
    """A rank among threads; what they exchange is pickled, as between processes."""

    def __init__(self, rank: int, found: list[bytes], barrier: Barrier) -> None:
        super().__init__(Place(rank, len(found), rank, len(found)))
        self._found, self._barrier = found, barrier

    def _exchange(self, own: object) -> list[Any]:
        self._found[self.rank] = pickle.dumps(own)
        self._barrier.wait(SECONDS)
        found = [pickle.loads(one) for one in self._found]
        self._barrier.wait(SECONDS)
        return found


def on_threads(
    request: LaunchRequest, size: int, engines: Sequence[Any] = (), **options: Any
) -> Outcome:
    found, barrier = [b""] * size, Barrier(size)
    request = pickle.loads(pickle.dumps(request.for_others()))

    def run(rank: int) -> Outcome:
        engine = engines[rank] if engines else InterpreterEngine(request.launch.config)
        return run_request(request, engine, **options, ranks=ThreadGroup(rank, found, barrier))

    with ThreadPoolExecutor(size) as pool:
        outcomes = list(pool.map(run, range(size)))
    for other in outcomes[1:]:
        same(other, outcomes[0])
    return outcomes[0]


@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("options", [{}, {"check": True, "sms": 2}, {"assume_independent": True}])
def test_every_number_of_ranks_gives_the_same(size: int, options: dict[str, Any]) -> None:
    request = request_of(COUNT)
    one, shared = at_once(request, **options), on_threads(request, size, **options)
    same(shared, one)
    assert shared.outputs == {"words": [7, 8, 9, 10, 11]}
    assert shared.processes == size
    assert shared.ranks is not None
    assert [share.ctas for share in shared.ranks] == [len(range(r, 5, size)) for r in range(size)]
    assert sum(share.tokens for share in shared.ranks) == shared.tokens
    assert sum(share.setup_tokens for share in shared.ranks) == shared.setup_tokens
    assert [share.setup_tokens == 0 for share in shared.ranks] == [r >= 5 for r in range(size)]


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("options", [{}, {"check": True}, {"assume_independent": True, "sms": 2}])
@pytest.mark.parametrize("text", [WILD_FROM_2, WILD_FROM_3])
def test_the_first_fault_is_reported(text: str, options: dict[str, Any], size: int) -> None:
    shared = on_threads(request_of(text), size, **options)
    (problem,) = at_once(request_of(text)).problems
    assert (shared.status, shared.problems) == (1, [problem])
    assert f"CTA {2 if text is WILD_FROM_2 else 3} " in problem
    same(shared, at_once(request_of(text), **options | {"sms": 5}))


@pytest.mark.parametrize("options", [{}, {"check": True}, {"assume_independent": True}])
def test_ctas_that_would_not_have_run_do_not_count(options: dict[str, Any]) -> None:
    request = request_of(ENDLESS_BEHIND_A_FAULT, 4)
    shared = on_threads(request, 2, max_tokens=100, **options)
    assert shared.problems == at_once(request).problems
    assert "CTA 1" in shared.problems[0]


@pytest.mark.parametrize("options", [{}, {"check": True}, {"assume_independent": True}])
def test_the_limit_is_that_of_all_ranks(options: dict[str, Any]) -> None:
    request = request_of(COUNT)
    tokens = at_once(request).tokens
    assert on_threads(request, 3, max_tokens=tokens, **options).status == 0
    for text, limit in ((COUNT, tokens - 1), (ENDLESS, 100)):
        outcome = on_threads(request_of(text), 3, max_tokens=limit, **options)
        assert outcome.status == 1
        assert "--max-tokens" in outcome.problems[0]


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (SAME_WORD, {}, "written by CTA 0 and CTA 1"),
        (SAME_WORD, {"assume_independent": True}, "written by CTA 0 and CTA 1"),
        (SAME_WORD, {"assume_independent": True, "check": True}, "written by CTA 0 and CTA 1"),
        (NEIGHBOUR, {}, "written by CTA 0, read by CTA 1"),
    ],
)
def test_ctas_of_different_ranks_depend_on_each_other(
    text: str, options: dict[str, Any], reason: str
) -> None:
    outcome = on_threads(request_of(text), 2, **options)
    assert outcome.status == 1
    assert f"(word {17 if text is NEIGHBOUR else 16}): {reason}" in outcome.problems[0]
    assert "in one process" in outcome.problems[0]
    same(outcome, at_once(request_of(text), **options | {"sms": 5}))


def test_a_wrong_token_on_one_rank_is_found(lying) -> None:
    class LyingRows(lying):  # type: ignore[misc, valid-type]
        def feed_rows(self, rows, tokens):
            return [self._lie(p) for p in InterpreterEngine.feed_rows(self, rows, tokens)]

    engines = [InterpreterEngine(NANO), LyingRows(at=3)]
    outcome = on_threads(request_of(COUNT), 2, engines, check=True)
    assert (outcome.status, outcome.exact) == (1, False)
    assert "token 2 differs" in outcome.problems[0]
    assert "CTA 1" in outcome.problems[0]


def test_one_stream_is_not_shared() -> None:
    group = ThreadGroup(0, [b"", b""], Barrier(2))
    for option in ({"verify": True}, {"speculate": 4}, {"read_back": True}):
        with pytest.raises(RequestError, match="second process"):
            run_request(request_of(COUNT), InterpreterEngine(NANO), **option, ranks=group)


def test_what_fails_on_one_rank_ends_all() -> None:
    found, barrier = [b""] * 3, Barrier(3)

    def fail(rank: int) -> str:
        group = ThreadGroup(rank, found, barrier)
        broken = rank == 1

        def work() -> None:
            if broken:
                raise ModelError("it is damaged")

        with pytest.raises(ModelError if broken else RankError) as caught:
            group.together(work)
        assert caught.value.exit_code == ModelError.exit_code
        return str(caught.value)

    with ThreadPoolExecutor(3) as pool:
        messages = list(pool.map(fail, range(3)))
    assert messages == ["rank 1: it is damaged", "it is damaged", "rank 1: it is damaged"]


def test_what_fails_is_told_as_a_command_tells_it() -> None:
    found, barrier = [b""] * 2, Barrier(2)

    def fail(rank: int) -> tuple[str, int]:
        def work() -> None:
            if rank == 1:
                raise FileNotFoundError(2, "No such file or directory", "k.cu")

        with pytest.raises(RankError if rank == 0 else FileNotFoundError) as caught:
            ThreadGroup(rank, found, barrier).together(work)
        return str(caught.value), getattr(caught.value, "exit_code", 0)

    with ThreadPoolExecutor(2) as pool:
        message, status = next(iter(pool.map(fail, range(2))))
    assert status == 2
    assert message.startswith("rank 1: ")
    assert "k.cu" in message
    assert "Error" not in message


def test_ctas_of_each_rank() -> None:
    shares = [own_ctas(ThreadGroup(r, [b""] * 3, Barrier(3)), 5) for r in range(3)]
    assert [list(share) for share in shares] == [[0, 3], [1, 4], [2]]
    assert list(own_ctas(ALONE, 3)) == [0, 1, 2]


# Ranks as processes.


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(TESTS)
    yield importlib.import_module("rank_work")
    del sys.modules["rank_work"]


def test_tokens_and_words_of_two_processes_are_those_of_one(
    work: ModuleType, nano_model: Path
) -> None:
    request = request_of(COUNT)
    shared = run_in_processes(work.Rows(request, nano_model, 2), 2)
    one = run_request_rows(request, load_sparse_engine(nano_model), 1)
    assert shared.trace.ctas == one.trace.ctas
    assert shared.trace.min_margin == one.trace.min_margin
    assert shared.changes == one.changes
    assert [len(share.tokens) for share in shared.shares] == [3, 2]


def test_outcomes_of_two_processes_are_those_of_one(work: ModuleType) -> None:
    row_max = kernel_to_request(KERNELS / "reduce" / "row_max.ptx", LaunchOptions(), DEFAULT)
    blind = {"assume_independent": True}
    launches: list[tuple[LaunchRequest, dict[str, Any]]] = [
        (row_max, {"check": True}),
        (request_of(SAME_WORD), blind),
        (request_of(WILD_FROM_3), blind),
        (request_of(ENDLESS), blind | {"max_tokens": 100}),
        (request_of(COUNT, 1), {}),
    ]
    sent = [(request.for_others(), options) for request, options in launches]
    outcomes = run_in_processes(work.Launches(sent), 2)
    for (request, options), found in zip(launches, outcomes, strict=True):
        same(found, at_once(request, **options | {"sms": 5}))
    assert outcomes[-1].outputs["words"][0] == 7


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("die_while_rank_0_waits", 1, r"rank 1 died \(SIGKILL\)"),
        pytest.param("die_on_rank_1", 1, r"rank 1 died \(SIGKILL\)", marks=pytest.mark.slow),
        pytest.param(
            "no_model_on_rank_1",
            ModelError.exit_code,
            "^rank 1: it is damaged$",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "broken_on_rank_1",
            1,
            "(?s)rank 1 failed.*ZeroDivisionError: broken",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.timeout(SECONDS)
def test_a_rank_that_fails_ends_all(work: ModuleType, name: str, status: int, message: str) -> None:
    before = children(os.getpid())
    with pytest.raises(RankError, match=message) as caught:
        run_in_processes(getattr(work, name), 2)
    assert caught.value.exit_code == status
    assert children(os.getpid()) == before


# The command line.


def test_launch_with_processes(invoke, nano_model: Path) -> None:
    options = (GRID, "--model", nano_model, "--engine", "sparse", "--check", "--json")
    status, text, one = invoke("launch", *options, "--sms", 2)
    assert status == 0, text
    status, text, shared = invoke("launch", *options, "--processes", 2)
    assert status == 0, text
    for name in ("outputs", "tokens", "baseline_tokens", "min_margin_bf16_steps", "exact"):
        assert shared[name] == one[name]
    assert (shared["processes"], one["processes"], one["ranks"]) == (2, 1, None)
    assert [share["ctas"] for share in shared["ranks"]] == [1, 1]
    assert all(share["tokens_per_second"] > 0 for share in shared["ranks"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--verify"], "--verify"),
        (["--speculate"], "--speculate"),
        (["--read-back"], "read"),
        (["--engine", "server", "--server", "http://localhost:1"], "second process"),
    ],
)
def test_options_that_do_not_go_together(invoke, options: list[str], message: str) -> None:
    status, text, _ = invoke("launch", GRID, "--engine", "interpreter", *options, "--processes", 2)
    assert status == 2
    assert message in text


def test_one_cta_needs_one_process(invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qgpu_run.local_ranks.run_in_processes", None)
    path = KERNELS / "elementwise" / "vector_add.ptx"
    status, _, data = invoke("launch", path, "--engine", "interpreter", "--json", "--processes", 4)
    assert (status, data["processes"], data["expected_ok"]) == (0, 1, True)


@contextmanager
def endless_launch(
    tmp_path: Path, ctrl_c: signal.Handlers = signal.SIG_DFL
) -> Iterator[subprocess.Popen[str]]:
    """The command with two ranks that compute until they are stopped.

    Args:
        ctrl_c: what SIGINT does to it; a shell has what it starts in the background ignore it.
    """
    (tmp_path / "endless.qasm").write_text(ENDLESS)
    command = [sys.executable, "-m", "qgpu_run.cli", "launch", str(tmp_path / "endless.qasm")]
    command += ["--engine", "interpreter", "--grid", "4", "--processes", "2"]
    command += ["--assume-independent", "--max-tokens", "1000000000"]
    settings = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=settings,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, ctrl_c),
    ) as process:
        try:
            until = time.monotonic() + SECONDS
            while not list(tmp_path.glob("qgpu-ranks-*/meeting")) and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(0.5)
            yield process
        finally:
            process.kill()


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with endless_launch(tmp_path) as process:
        yield process


@pytest.mark.skipif(shutil.which("pgrep") is None, reason="processes are found by pgrep")
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("ctrl-c", 1),
        pytest.param("a rank is killed", 1, marks=pytest.mark.slow),
        pytest.param("terminate", 128 + signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(
            "kill",
            -signal.SIGKILL,
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.timeout(2 * SECONDS)
def test_nothing_is_left_of_a_launch(
    endless: subprocess.Popen[str], tmp_path: Path, end: str, status: int
) -> None:
    ranks = children(endless.pid)
    assert len(ranks) == 2
    match end:
        case "ctrl-c":
            os.killpg(endless.pid, signal.SIGINT)
        case "a rank is killed":
            os.kill(ranks[1], signal.SIGKILL)
        case "terminate":
            endless.terminate()
        case "kill":
            endless.kill()
    _, errors = endless.communicate(timeout=SECONDS)
    assert endless.returncode == status, errors
    if end == "a rank is killed":
        assert "rank 1 died (SIGKILL)" in errors
    assert_gone(ranks)
    if end != "kill":
        assert not list(tmp_path.glob("qgpu-ranks-*"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pgrep") is None, reason="processes are found by pgrep")
@pytest.mark.timeout(2 * SECONDS)
def test_nothing_is_left_of_a_killed_launch_in_the_background(tmp_path: Path) -> None:
    with endless_launch(tmp_path, signal.SIG_IGN) as process:
        ranks = children(process.pid)
        process.kill()
        process.communicate(timeout=SECONDS)
    assert len(ranks) == 2
    assert_gone(ranks)


def assert_gone(ranks: list[int]) -> None:
    until = time.monotonic() + SECONDS
    while any(map(alive, ranks)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, ranks))


def children(pid: int) -> list[int]:
    """The processes that a process has started through multiprocessing."""
    if shutil.which("pgrep") is None:
        return []
    found = subprocess.run(
        ["pgrep", "-P", str(pid), "-f", "spawn_main"], capture_output=True, text=True, check=False
    )
    return sorted(map(int, found.stdout.split()))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# Under a launcher.


def test_a_launcher_says_who_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert place_from_environment() is None
    for name, value in zip(VARIABLES, ("5", "8", "host", "29500"), strict=True):
        monkeypatch.setenv(name, value)
    assert place_from_environment() == Place(5, 8, 5, 8)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    place = place_from_environment()
    assert place == Place(5, 8, 1, 4)
    assert [place.device(name) for name in ("cuda", "cuda:3", "cpu")] == ["cuda:1", "cuda:3", "cpu"]
    assert dataclasses.replace(place, local_size=10**6).threads == 1
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert place_from_environment() is None
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(RankError, match="numbers"):
        place_from_environment()


def test_a_launcher_and_processes_are_not_both_needed(
    invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in zip(VARIABLES, ("0", "2", "localhost", "1"), strict=True):
        monkeypatch.setenv(name, value)
    status, text, _ = invoke("launch", GRID, "--engine", "interpreter", "--processes", 2)
    assert status == 2
    assert "leave --processes out" in text


def torchrun(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--standalone", "-m", "qgpu_run.cli", "launch", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.timeout(2 * SECONDS)
def test_only_rank_0_speaks_under_torchrun() -> None:
    path = KERNELS / "reduce" / "row_max.ptx"
    done = torchrun(path, "--engine", "interpreter", "--check", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["exact"], found["expected_ok"], found["processes"]) == (True, True, 2)
    assert [share["rank"] for share in found["ranks"]] == [0, 1]


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
def test_wrong_input_is_one_message_under_torchrun(tmp_path: Path) -> None:
    done = torchrun(tmp_path / "none.cu", "--engine", "interpreter")
    assert done.returncode == 1  # torchrun's own
    assert done.stderr.count("error: there is no file") == 1
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.timeout(4 * SECONDS)
def test_two_processes_of_the_unmodified_class(invoke, nano_model: Path) -> None:
    options = (GRID, "--model", nano_model, "--check", "--json")
    status, text, one = invoke("launch", *options)
    assert status == 0, text
    status, text, shared = invoke("launch", *options, "--processes", 2)
    assert status == 0, text
    assert shared["exact"] is True
    assert shared["outputs"] == one["outputs"]


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
def test_scale_with_processes(invoke, nano_model: Path) -> None:
    options = ("--model", nano_model, "--engine", "sparse", "--ctas", 1, "--ctas", 3, "--json")
    status, text, data = invoke("scale", *options, "--repeats", 1, "--processes", 2)
    assert status == 0, text
    assert data["processes"] == 2
    assert [row["ctas"] for row in data["launches"]] == [1, 3]
