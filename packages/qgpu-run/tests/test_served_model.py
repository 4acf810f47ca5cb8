"""Launches through `transformers serve` itself, which knows nothing of a GPU."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra `server` is not installed")
pytest.importorskip("fastapi", reason="the extra `server` is not installed")

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
VECTOR_ADD = KERNELS / "elementwise" / "vector_add.ptx"
FOUR = ("--block", 4, "--arg", "n=4", "--arg", "a=1,2,3,-4", "--arg", "b=10,20,30,40")
FOUR = (*FOUR, "--arg", "c=zeros(4)", "--json")


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


serve = _load("serve")


def named(model: Path, output: Path) -> Path:
    command = [sys.executable, "-m", "qgpu_merge.cli", "name-tokens", model, "-o", output]
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    return output


@pytest.fixture(scope="module")
def nano_server(nano_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    # In the cache's file system, so that the weights are linked.
    root = tmp_path_factory.mktemp("served")
    with serve.serving(named(nano_model, root / "nano"), root / "log") as url:
        yield url


def test_vector_add_on_nano(nano_server: str, invoke: Any) -> None:
    status, text, data = invoke(
        "launch", VECTOR_ADD, "--engine", "server", "--server", nano_server, "--check", *FOUR
    )
    assert status == 0, text
    assert data["exact"] is True
    assert data["machine"] == "nano"
    assert data["outputs"] == {"c": [11, 22, 33, 36]}
    assert data["requests"] == 2
    assert data["read_back_tokens"] > 0
