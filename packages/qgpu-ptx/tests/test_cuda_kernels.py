"""Kernels that need barriers and warps, from every installed compiler, against plain Python."""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Callable, Iterable
from functools import reduce
from operator import and_, or_, xor
from pathlib import Path

import pytest
from qgpu_ptx import cuda_to_ptx, parse_ptx, run_ptx
from qgpu_ptx.cuda_to_ptx import COMPILERS
from qgpu_ptx.ptx_ast import Module

SOURCE = Path(__file__).parent / "inputs" / "kernels.cu"
N = 64
TABLE = [3, 1, 4, 1, 5, 9, 2, 6]
CONFIGURATIONS = [
    *((compiler.name, ()) for compiler in COMPILERS),
    ("nvrtc", ("-G",)),
    ("clang", ("-O0",)),
]


@pytest.fixture(scope="module", params=CONFIGURATIONS, ids=lambda c: "".join([c[0], *c[1]]))
def module(request: pytest.FixtureRequest) -> Module:
    name, options = request.param
    if next(c for c in COMPILERS if c.name == name).version() is None:
        pytest.skip(f"{name} is not installed")
    source = cuda_to_ptx(SOURCE, compiler=name, options=options)
    module = parse_ptx(source.text, "kernels.ptx")
    assert parse_ptx(str(module)) == module
    return module


def square(v: list[int]) -> list[int]:
    rows = [v[i : i + 8] for i in range(0, N, 8)]
    columns = list(zip(*rows, strict=True))
    return [sum(a * b for a, b in zip(r, c, strict=True)) for r in rows for c in columns]


def vectors(v: list[int]) -> list[int]:
    quads = [v[i : i + 4] for i in range(0, N, 4)]
    return [w for t, q in enumerate(quads) for w in (q[3], q[2], q[1] + TABLE[t % 8], q[0])]


def votes(v: list[int]) -> list[int]:
    positive = sum(x > 0 for x in v)
    return [1000 * sum(x & 1 for x in v[t // 32 * 32 : t]) + positive for t in range(N)]


def segments(v: list[int]) -> list[int]:
    out: list[int] = []
    for start in range(0, N, 8):
        sums = list(itertools.accumulate(v[start : start + 8]))
        out += [x + sums[3] for x in sums]
    return out


def atomics(v: list[int]) -> list[int]:
    folds: Iterable[int] = (reduce(f, v, 0) for f in (max, min, and_, or_, xor))
    return [*folds, 5 + N]


ORACLES: dict[str, Callable[[list[int]], list[int]]] = {
    "histogram": lambda v: [sum(x & 15 == i for x in v) for i in range(16)],
    "scan": lambda v: list(itertools.accumulate(v)),
    "reduce": lambda v: [sum(v)],
    "bitonic_sort": sorted,
    "square": square,
    "vectors": vectors,
    "lock": lambda v: [0, sum(v)],
    "votes": votes,
    "segments": segments,
    "atomics": atomics,
    "pointers": lambda v: [x + t if x & 1 else x * t for t, x in enumerate(v)],
    "recursion": lambda v: [sum(range((x & 7) + 1)) for x in v],
}


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_kernel_equals_plain_python(module: Module, name: str) -> None:
    rng = random.Random(name)
    values = [rng.randint(-40, 40) for _ in range(N)]
    arguments = [array("i", [0] * N), array("i", values), N]
    outcome = run_ptx(module, name, 1, N, arguments, dynamic_shared_bytes=4 * N)
    wanted = ORACLES[name](values)
    assert list(outcome[0])[: len(wanted)] == wanted
