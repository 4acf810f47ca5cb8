"""The kernels folder is complete, consistent and small."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
SOURCES = sorted(KERNELS.glob("*/*.cu"))
NAMES = [path.stem for path in SOURCES]
MAX_WORDS = 500
MAX_SHARED_BYTES = 508
MAX_THREADS = 128


def load(name: str) -> ModuleType:
    """A module of the kernels folder, which is not an installed package."""
    known = sys.modules.get(name)
    if known is not None and Path(known.__file__ or "").parent == KERNELS:
        return known
    spec = importlib.util.spec_from_file_location(name, KERNELS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


expected = load("expected")


def read_spec(source: Path) -> dict[str, Any]:
    return tomllib.loads(source.with_suffix(".toml").read_text(encoding="utf-8"))


def test_there_are_enough_kernels() -> None:
    assert len(SOURCES) >= 64
    assert {"vector_add", "dot"} <= set(NAMES)
    assert len(set(NAMES)) == len(NAMES)


def test_every_function_has_a_kernel() -> None:
    assert set(expected.EXPECTED) == set(NAMES)


def test_no_file_is_left_over() -> None:
    for suffix in (".toml", ".ptx"):
        assert sorted(path.stem for path in KERNELS.glob(f"*/*{suffix}")) == sorted(NAMES)


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_spec_is_well_formed(source: Path) -> None:
    spec = read_spec(source)
    assert spec["kernel"] == source.stem
    assert spec["summary"]
    assert spec.keys() <= {
        "kernel",
        "grid",
        "block",
        "dynamic_shared_bytes",
        "summary",
        "args",
        "expected",
    }
    for name in ("grid", "block"):
        assert 1 <= len(spec[name]) <= 3
        assert all(isinstance(v, int) and v > 0 for v in spec[name])
    assert prod(spec["block"]) <= MAX_THREADS

    names = [arg["name"] for arg in spec["args"]]
    assert len(set(names)) == len(names)
    size = 0
    for arg in spec["args"]:
        dtype = np.dtype(expected.DTYPES[arg["type"].rstrip("*")])
        given = arg.keys() & {"value", "values", "length"}
        assert len(given) == 1
        if arg["type"].endswith("*"):
            assert given <= {"values", "length"}
        else:
            assert given == {"value"}
            assert not arg.get("output")
        limits = np.iinfo(dtype)
        values = arg.get("values", [arg["value"]] if "value" in arg else [])
        assert all(limits.min <= v <= limits.max for v in values)
        size += dtype.itemsize * (arg.get("length") or len(values))
    assert size <= 4 * MAX_WORDS
    assert set(spec["expected"]) == {arg["name"] for arg in spec["args"] if arg.get("output")}


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_expected_results_are_those_of_numpy(source: Path) -> None:
    spec = read_spec(source)
    results = {name: values.tolist() for name, values in expected.expected_results(spec).items()}
    assert spec["expected"] == results
    # A kernel whose results are all zero would pass without running.
    assert any(any(values) for values in results.values())


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_ptx_belongs_to_the_source(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    ptx = source.with_suffix(".ptx").read_text(encoding="utf-8")
    spec = read_spec(source)
    assert text.startswith("// ")
    assert "#include" not in text
    assert f".visible .entry {source.stem}(" in ptx
    assert ".target sm_75" in ptx
    assert re.findall(r'\.file\s+\d+\s+"([^"]*)"', ptx) == [source.name]
    parameters = re.findall(rf"^\s*\.param .*\b{source.stem}_param_\d+", ptx, re.MULTILINE)
    assert len(parameters) == len(spec["args"])
    static = sum(int(n) for n in re.findall(r"\.shared .* \.b8 \w+\[(\d+)\]", ptx))
    static += 4 * len(re.findall(r"\.shared \.align 4 \.u32 \w+;", ptx))
    assert static + spec.get("dynamic_shared_bytes", 0) <= MAX_SHARED_BYTES


def run_script(*arguments: str) -> None:
    command = [sys.executable, str(KERNELS / arguments[0]), *arguments[1:]]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="NVRTC is only installed on Linux")
def test_derived_files_are_fresh() -> None:
    run_script("regenerate.py", "--check")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in for the GPU needs ucontext")
def test_sources_run_on_the_cpu() -> None:
    run_script("check_native.py")
