"""Expressions on real weights, every token compared with the reference interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest
import qgpu
from qgpu_run.expression import CalculationError, Calculator
from qgpu_run.expression.operations import OPERATIONS


@pytest.fixture(scope="module")
def calculator(nano_model: Path) -> Calculator:
    return Calculator(qgpu.Device(engine="sparse", model=nano_model, check=True))


@pytest.mark.parametrize("operation", OPERATIONS, ids=[o.name for o in OPERATIONS])
def test_every_example(operation, calculator: Calculator) -> None:
    if operation.name == "is_prime":
        pytest.skip("machine nano has too few registers")
    result = calculator.evaluate(operation.example)
    assert result.text == operation.value
    assert result.exact is True
    assert min(launch.margin for launch in result.launches) >= 16


def test_what_kernels_find(calculator: Calculator) -> None:
    for text, message in (
        ("99999 * 99999", "overflow: 99999 * 99999 does not fit 32 bits"),
        ("[1, 2] / 0", "division by zero: [1, 2] / 0"),
    ):
        with pytest.raises(CalculationError) as caught:
            calculator.evaluate(text)
        assert caught.value.message == message
        assert caught.value.launches[-1].exact is True
    assert calculator.evaluate("2 + 2").text == "4"


@pytest.mark.slow
@pytest.mark.parametrize("expression", ["12 + 30", "sum([12, 7, 30])", "[[1, 2], [3, 4]] @ [5, 6]"])
def test_unmodified_model(expression: str, nano_model: Path) -> None:
    result = Calculator(qgpu.Device(engine="transformers", model=nano_model, check=True)).evaluate(
        expression
    )
    assert result.exact is True
