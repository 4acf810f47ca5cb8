"""The calculator: what it tells of launches, what stays between them, and interruption."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import pytest
import qgpu
from qgpu_run.errors import RequestError
from qgpu_run.expression import (
    CalculationError,
    Calculator,
    LaunchEvent,
    LaunchFinished,
    LaunchStarted,
)
from qgpu_run.expression.graph import Gathered, Literal
from qgpu_run.expression.places import find_places
from qgpu_run.expression.plan import plan

DOCS = Path(__file__).resolve().parents[4] / "docs" / "expressions.md"


def device(profile: str = "small", **options: object) -> qgpu.Device:
    return qgpu.Device(profile=profile, engine="interpreter", **options)  # type: ignore[arg-type]


def test_result_and_records() -> None:
    events: list[LaunchEvent] = []
    tokens: list[int] = []
    calculator = Calculator(
        device(check=True),
        on_launch=events.append,
        on_token=lambda cta, token: tokens.append(token),
    )
    result = calculator.evaluate("sum([12, 7, 30]) / 2")
    assert (result.value, result.text) == (24, "24 (remainder 1)")
    assert result.notes == ("remainder 1",)
    assert result.exact is True
    first, second = result.launches
    assert (first.kernel, first.operation, first.text) == (
        "checked_sum", "sum", "sum([12, 7, 30])",
    )  # fmt: skip
    assert (first.arguments, first.value, first.exact) == (([12, 7, 30],), 49, True)
    assert (second.arguments, second.value) == ((49, 2), 24)
    assert len(tokens) == first.tokens + second.tokens
    assert all(launch.setup_tokens > 0 and launch.seconds > 0 for launch in result.launches)
    assert events == [
        LaunchStarted(0, 2, first.kernel, "sum", first.text, first.arguments),
        LaunchFinished(0, 2, first),
        LaunchStarted(1, 2, second.kernel, "divide", second.text, second.arguments),
        LaunchFinished(1, 2, second),
    ]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("7 / 2", "3 (remainder 1)"),
        ("-7 / 2", "-3 (remainder -1)"),
        ("8 / 2", "4"),
        ("7 / 2 * 2", "6 (7 / 2 left remainder 1)"),
        ("[7, 8] / 2", "[3, 4] (remainders [1, 0])"),
        ("7 / 2 + 5 / 3", "4 (7 / 2 left remainder 1; 5 / 3 left remainder 2)"),
        ("mean([[1, 2], [2, 2]], 0)", "[1, 2] (remainders [1, 0])"),
        ("7 % 2", "1"),
        ("[1 < 2, 2 < 1]", "[true, false]"),
        ("[[1, 2], [3, 4]]", "[[1, 2], [3, 4]]"),
        ("true", "true"),
        ("-0", "0"),
    ],
)
def test_text(expression: str, text: str, calculator: Calculator) -> None:
    assert calculator.evaluate(expression).text == text


def test_the_host_computes_nothing() -> None:
    """Numbers reach kernels through memory only: the program is the same for all values."""
    on = device()
    calculator = Calculator(on)
    calculator.evaluate("(12 + 30) * 3")
    lowered = len(on._lowered)
    calculator.evaluate("(99 + -7) * 1000")
    assert len(on._lowered) == lowered
    assert [type(node) for node in plan("1 + 2 * 3").nodes].count(Literal) == 3


def test_parts_of_lists_lie_in_the_list() -> None:
    graph = plan("[[1 + 2, 3], [4, 5]] * 2")
    places = find_places(graph)
    (whole,) = [n for n in graph.nodes if isinstance(n, Gathered) and n.type.shape == (2, 2)]
    owned = sorted(place.first for place in places.of.values() if place.owner is whole)
    assert owned == [0, 0, 0, 1, 2]
    assert len(graph.calls) == 2


def test_memory_is_given_back() -> None:
    on = device("nano")
    calculator = Calculator(on)
    before = on.pool.end
    for k in range(3):
        assert calculator.evaluate("[1, 2, 3] + [4, 5, 6] * 2 - 1 + 1 - 1 + 1").value == [9, 12, 15]
        with pytest.raises(CalculationError):
            calculator.evaluate(f"[1, 2, 3] / {k - k}")
        gc.collect()
        assert on.pool.end == before


def test_programs_stay_in_the_state() -> None:
    calculator = Calculator(device())
    first = calculator.evaluate("sum([1, 2, 3])").launches[0]
    again = calculator.evaluate("sum([4, 5, 6])").launches[0]
    assert again.setup_tokens < first.setup_tokens / 2


def test_an_interrupted_evaluation_leaves_no_trace() -> None:
    seen = 0

    def interrupt(cta: int, token: int) -> None:
        nonlocal seen
        seen += 1
        if seen == 40:
            raise KeyboardInterrupt

    calculator = Calculator(device(check=True), on_token=interrupt)
    with pytest.raises(KeyboardInterrupt):
        calculator.evaluate("sum(range(10)) + 1")
    result = calculator.evaluate("sum(range(10)) + 1")
    assert (result.value, result.exact) == (46, True)


def test_an_engine_that_errs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    on = device(check=True)
    calculator = Calculator(on)
    assert calculator.evaluate("1 + 1").exact is True
    checked = on._checked
    assert checked is not None
    honest = checked.read_memory

    def lie() -> list[int]:
        words = honest()
        words[-1] ^= 1
        return words

    monkeypatch.setattr(checked, "read_memory", lie)
    result = calculator.evaluate("1 + 1")
    assert (result.value, result.exact) == (2, False)
    monkeypatch.undo()
    assert calculator.evaluate("1 + 1").exact is True


def test_devices_that_do_not_do() -> None:
    with pytest.raises(RequestError, match="sms=1"):
        Calculator(device(sms=2))
    with pytest.raises(RequestError, match="sms=1"):
        device(sms=2, check=True)


def test_without_launches_nothing_is_checked() -> None:
    assert Calculator(device(check=True)).evaluate("[1, 2]").exact is None


def test_views_of_device_arrays() -> None:
    with device():
        array = qgpu.asarray([1, 2, 3, 4])
        assert array[1:3].get().tolist() == [2, 3]
        array[2:][:1].set(9)
        assert array.get().tolist() == [1, 2, 9, 4]
        with pytest.raises(IndexError):
            array[::2]


def test_the_documented_example_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)
    exec(block, {})
