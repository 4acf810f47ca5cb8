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


@pytest.mark.slow
def test_vector_add_on_default(tmp_path: Path, invoke: Any) -> None:
    from qgpu_run.load_model import ensure_model

    folder = named(ensure_model("default"), tmp_path / "default")
    with serve.serving(folder, tmp_path / "log") as url:
        path = VECTOR_ADD.with_suffix(".cu")
        options = ("--engine", "server", "--server", url, "--check", "--json")
        status, text, data = invoke("launch", path, *options)
    assert status == 0, text
    assert data["exact"] is True
    assert data["expected_ok"] is True
    assert data["requests"] == 2


@pytest.mark.slow
def test_a_chat_on_the_server_alone(tmp_path: Path, invoke: Any) -> None:
    """Text and launches are the server's; other clients get the model's calls."""
    import openai
    from qgpu_run.chat.stand_in import ensure_stand_in

    folder = named(ensure_stand_in(), tmp_path / "chat")
    with serve.serving(folder, tmp_path / "log") as url:
        status, text, data = invoke("ask", "--server", url, "--json", "What is 12 + 30?")
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        answer = client.chat.completions.create(
            model=client.models.list().data[0].id,
            messages=[{"role": "user", "content": "What is 12 + 30?"}],
            temperature=0,
            max_tokens=100,
        )
    assert status == 0, text
    assert "42" in data["answer"]
    assert [call["exact"] for call in data["calls"]] == [True]
    calls = answer.choices[0].message.tool_calls
    assert calls is not None
    assert calls[0].function.name == "calculate"
    assert "12 + 30" in calls[0].function.arguments
