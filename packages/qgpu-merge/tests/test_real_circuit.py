"""The compiled nano circuit, merged: text stays text, and GPU tokens stay off it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.skipif(
    find_spec("qgpu_circuit.cli") is None, reason="needs the circuit compiler"
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which a bare build has made circuit, base and merged model."""
    folder = tmp_path_factory.mktemp("cache")
    done = subprocess.run(
        [sys.executable, "-m", "qgpu_merge.cli", "build", "--profile", "nano"],
        env=os.environ | {"QGPU_CACHE": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (circuit,) = (folder / "circuits").iterdir()
    assert f"\n{circuit}: 32 layers, digest " in done.stderr
    assert "partial" not in done.stderr
    return folder


def load(folder: Path, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()


def test_text_is_untouched(cache: Path) -> None:
    (base_folder,) = (cache / "bases").iterdir()
    (merged_folder,) = (cache / "models").iterdir()
    vocab = json.loads((merged_folder / "config.json").read_text())["qgpu"]["token_offset"]
    tokens = torch.randint(0, vocab, (1, 24), generator=torch.Generator().manual_seed(0))
    merged = load(merged_folder, torch.bfloat16)
    layers = json.loads((merged_folder / "config.json").read_text())["qgpu"]["circuit_layers"]
    with torch.no_grad():
        states = merged(tokens, output_hidden_states=True).hidden_states
    assert torch.equal(states[0], states[layers])
    with torch.no_grad():
        expected = load(base_folder, torch.float32)(tokens).logits.log_softmax(-1)
        found = load(merged_folder, torch.float32)(tokens).logits.log_softmax(-1)
    kl = (expected.exp() * (expected - found[..., :vocab])).sum(-1)
    assert float(kl.max()) < 1e-6
    assert float(found[..., vocab:].max()) < -1e9
