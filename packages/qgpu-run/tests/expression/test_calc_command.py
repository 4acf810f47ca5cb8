"""`qgpu-run calc`."""

from __future__ import annotations

from typing import Any

import pytest
from qgpu_run.expression.operations import operations_table

ON = ("--engine", "interpreter", "--profile", "small")


def test_json(invoke: Any) -> None:
    status, _, data = invoke("calc", "sum([12, 7, 30])", "--json", *ON)
    assert status == 0
    assert data["expression"] == "sum([12, 7, 30])"
    assert (data["value"], data["text"], data["exact"]) == (49, "49", None)
    (launch,) = data["launches"]
    assert launch["kernel"] == "checked_sum"
    assert launch["arguments"] == [[12, 7, 30]]
    assert launch["tokens"] > 0


def test_check(invoke: Any) -> None:
    status, output, _ = invoke("calc", "[1 + 2, 4] @ [3, 4]", "--check", *ON)
    assert status == 0
    first, *launches, total, check = output.splitlines()
    assert first == "25"
    assert launches[0].startswith("  1 + 2 = 3: checked_arithmetic, ")
    assert launches[1].startswith("  [1 + 2, 4] @ [3, 4] = 25: matrix_product, ")
    assert total.startswith("2 launches on machine 'small', interpreter: ")
    assert check.startswith("check: nothing compared")
    assert invoke("calc", "2 > 1", "--check", "--json", *ON)[2]["exact"] is True


@pytest.mark.parametrize(
    ("expression", "status", "message"),
    [
        ("1 / 0", 1, "error: division by zero: 1 / 0\n  1 / 0\n  ^^^^^\n"),
        ("1 + y", 2, "error: unknown name 'y'\n  1 + y\n      ^\n"),
        ("range(2000)", 2, "error: machine 'small' is too small: no place for an array"),
    ],
)
def test_errors(expression: str, status: int, message: str, invoke: Any) -> None:
    found, output, _ = invoke("calc", expression, *ON)
    assert found == status
    assert message in output


def test_a_leading_minus_is_no_option(invoke: Any) -> None:
    assert invoke("calc", "-7 % 3", *ON)[1].startswith("-1\n")
    assert invoke("calc", "1", "--no-such-option", *ON)[0] == 2


def test_list(invoke: Any) -> None:
    assert invoke("calc", "--list") == (0, operations_table(), {})
    assert invoke("calc")[0] == 2
