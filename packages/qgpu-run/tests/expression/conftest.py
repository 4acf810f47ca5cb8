"""Calculators on the reference interpreter, and the second evaluator."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import qgpu
from qgpu_run.expression import Calculator


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    path = Path(__file__).parent / "reference.py"
    spec = importlib.util.spec_from_file_location("expression_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def calculator() -> Calculator:
    return Calculator(qgpu.Device(profile="default", engine="interpreter"))
