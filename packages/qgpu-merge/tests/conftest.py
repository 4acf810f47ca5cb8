"""Shared fixtures: a fake circuit, a base that fits it, and their merge."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
# Read when torch is imported: its threads sleep while they wait, so busy cores do not stall it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from qgpu_merge.read_circuit import Circuit
from qgpu_merge.synthetic_base import SyntheticSizes, write_synthetic_base
from qgpu_merge.weights_to_checkpoint import build_checkpoint


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


fake_circuit = _load("fake_circuit")
edited_merge = _load("edited_merge")


@pytest.fixture(scope="session")
def qwen_tokenizer() -> ModuleType:
    """The module that writes a small tokenizer; made when asked for, as it imports transformers."""
    return _load("qwen_tokenizer")


@pytest.fixture(scope="session")
def circuit_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = fake_circuit.write_fake_circuit(tmp_path_factory.mktemp("c") / "circuit")
    return folder


@pytest.fixture(scope="session")
def base_folder(tmp_path_factory: pytest.TempPathFactory, circuit_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("b") / "base"
    write_synthetic_base(folder, SyntheticSizes.for_circuit(Circuit(circuit_folder)))
    return folder


@pytest.fixture(scope="session")
def merged_folder(
    tmp_path_factory: pytest.TempPathFactory, circuit_folder: Path, base_folder: Path
) -> Path:
    folder = tmp_path_factory.mktemp("m") / "merged"
    build_checkpoint(circuit_folder, base_folder, folder, shard_bytes=1 << 19)
    return folder
