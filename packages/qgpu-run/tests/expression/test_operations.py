"""Each operation of the table: its example, and random arguments against a second evaluator."""

from __future__ import annotations

import random
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import qgpu
from qgpu_run.expression import CalculationError, Calculator, ExpressionError
from qgpu_run.expression.format_value import format_value
from qgpu_run.expression.operations import BY_NAME, OPERATIONS, Operation, operations_table
from qgpu_run.expression.plan import plan
from qgpu_run.expression.types import ValueType

ROOT = Path(__file__).resolve().parents[4]
KERNELS = ROOT / "packages/qgpu-run/src/qgpu_run/expression/kernels"
NAMES = [operation.name for operation in OPERATIONS]

EDGES = (0, 1, -1, 2, 3, 5, 31, 46, 2**31 - 1, -(2**31), 65536, -46341)
SHAPES: dict[str, list[tuple[Any, ...]]] = {
    "vectors": [((5,),), ((1,),), ((40,),)],
    "any": [((),), ((5,),), ((2, 3),), ((33,),)],
    "pairs": [((), ()), ((5,), (5,)), ((5,), ()), ((), (2, 3)), ((2, 3), (2, 3))],
    "products": [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((1, 1), (1,))],
    "triples": [((), (), ()), ((4,), (), (4,)), ((2, 2), (2, 2), (2, 2)), ((), (3,), ())],
}
VECTORS = {"sort", "sort_desc", "reverse", "cumsum", "cumprod"}


def shapes_for(operation: Operation) -> list[tuple[Any, ...]]:
    match operation.name:
        case "matmul" | "dot_sign":
            return SHAPES["products"]
        case "outer":
            return [((2,), (3,)), ((1,), (4,))]
        case "diff":
            return [((2,),), ((7,),)]
        case "trace" | "transpose":
            return [((2, 3),), ((3, 3),)]
        case name if name in VECTORS:
            return SHAPES["vectors"]
    if operation.least == 3:
        return SHAPES["triples"]
    return SHAPES["any" if operation.least == 1 else "pairs"]


def numbers(choice: random.Random, shape: tuple[int, ...], size: int) -> np.ndarray[Any, Any]:
    def one() -> int:
        return choice.choice(EDGES) if choice.random() < size / 20 else choice.randint(-size, size)

    flat = [one() for _ in range(int(np.prod(shape)))]
    return np.array(flat, dtype=object).reshape(shape)


def compare(
    calculator: Calculator, reference: ModuleType, text: str, name: str, *args: Any
) -> bool:
    """Whether there was a value; it, or the error, is the second evaluator's."""
    wanted, kinds = reference.value_or_kinds(name, *args)
    if kinds:
        with pytest.raises(CalculationError) as caught:
            calculator.evaluate(text)
        assert any(caught.value.message.startswith(kind) for kind in kinds), text
        return False
    result = calculator.evaluate(text)
    found = np.array(result.value, dtype=object)
    assert found.shape == np.shape(wanted), text
    assert (found == wanted).all(), (text, result.text, wanted)
    return True


@pytest.mark.parametrize("operation", OPERATIONS, ids=NAMES)
def test_example(operation: Operation, calculator: Calculator) -> None:
    assert operation.example
    result = calculator.evaluate(operation.example)
    assert result.text == operation.value
    assert operation.name in {launch.operation for launch in result.launches}
    assert len(result.launches) == len(plan(operation.example).calls)


@pytest.mark.parametrize("operation", OPERATIONS, ids=NAMES)
def test_random_arguments(
    operation: Operation, calculator: Calculator, reference: ModuleType
) -> None:
    """Called by name, and by each other name once."""
    name = operation.name
    if name in ("range", "item"):
        pytest.skip("its arguments are written out; tested below")
    choice = random.Random(name)
    names = [name, *operation.aliases]
    found = 0
    size = 3 if name in ("prod", "cumprod", "power") else 9
    for round_, shapes in enumerate(2 * shapes_for(operation)):
        if name == "is_prime" and np.prod(shapes[0]) > 6:
            continue
        arrays = [numbers(choice, shape, size) for shape in shapes]
        if name == "clip":
            arrays[1], arrays[2] = np.array(-3), np.array(7)
        text = f"{names[round_ % len(names)]}({', '.join(map(format_array, arrays))})"
        found += compare(calculator, reference, text, name, *arrays)
    assert found


def format_array(array: np.ndarray[Any, Any]) -> str:
    return format_value(array.tolist())


AXES = [operation.name for operation in OPERATIONS if "axis" in operation.options]


@pytest.mark.parametrize("name", AXES)
def test_along_an_axis(name: str, calculator: Calculator, reference: ModuleType) -> None:
    choice = random.Random(name)
    for axis, length in ((0, 3), (1, 4)):
        array = numbers(choice, (3, 4), 2)
        text = f"{name}({format_array(array)}, axis={axis})"
        compare(calculator, reference, text, name, array, axis)
        if name not in ("min", "max"):
            shorter = text.replace("axis=", "")
            assert calculator.evaluate(shorter).value == calculator.evaluate(text).value
        assert len(calculator.evaluate(text).value) == 7 - length  # type: ignore[arg-type]


@pytest.mark.parametrize("bounds", [(4,), (2, 9), (-3, 3), (10, 0, -3), (5, 6)])
def test_range(bounds: tuple[int, ...], calculator: Calculator) -> None:
    assert calculator.evaluate(f"range{bounds}".replace(",)", ")")).value == list(range(*bounds))


def test_items(calculator: Calculator) -> None:
    assert calculator.evaluate("[5, 6, 7][-1]").value == 7
    assert calculator.evaluate("[[1, 2], [3, 4]][1]").value == [3, 4]
    assert calculator.evaluate("[[1, 2], [3, 4]][1, -2]").value == 3
    assert calculator.evaluate("[[1, 2], [3, 4]][0][1]").value == 2
    assert calculator.evaluate("[true, false][0]").value is True


def test_several_scalars_are_an_array(calculator: Calculator) -> None:
    assert calculator.evaluate("sum(1, 2, 3)").value == 6
    assert calculator.evaluate("max(3, 2 + 7, 4)").value == 9
    assert calculator.evaluate("mean(1, 2)").text == "1 (remainder 1)"


@pytest.mark.parametrize("v", [*range(-2, 60), 2047, 25326001, 1373653, 2147483647, 2147302921])
def test_primes(v: int, calculator: Calculator) -> None:
    wanted = v > 1 and all(v % d for d in range(2, int(v**0.5) + 1))
    assert calculator.evaluate(f"is_prime({v})").value is wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("99999 * 99999", "overflow: 99999 * 99999 does not fit 32 bits"),
        ("1 + (2 + 3) * factorial(13)", "overflow: factorial(13) does not fit 32 bits"),
        ("-(-2147483648)", "overflow: -(-2147483648) does not fit 32 bits"),
        ("-2147483648 / -1", "overflow: -2147483648 / -1 does not fit 32 bits"),
        ("[1, 2] / [3, 0]", "division by zero: [1, 2] / [3, 0]"),
        ("7 % 0", "division by zero: 7 % 0"),
        ("2 ** -1", "negative exponent: 2 ** -1"),
        ("sqrt(-4)", "sqrt of a negative number: sqrt(-4)"),
        ("(-1)!", "factorial of a negative number: (-1)!"),
        ("1 << 32", "a shift by other than 0 to 31: 1 << 32"),
        ("sum([2147483647, 1])", "overflow: sum([2147483647, 1]) does not fit 32 bits"),
        ("[-2147483648] * 4 @ [1]", "overflow: [-2147483648] * 4 does not fit 32 bits"),
    ],
)
def test_what_kernels_find(text: str, message: str, calculator: Calculator) -> None:
    with pytest.raises(CalculationError) as caught:
        calculator.evaluate(text)
    assert caught.value.message == message
    assert caught.value.exit_code == 1
    assert caught.value.launches[-1].error == message
    # The error word does not stay.
    assert calculator.evaluate("1 + 1").value == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sum([2147483647, 1, -1])", 2147483647),
        ("prod([65536, 32768, -1])", -(2**31)),
        ("prod([65536, 65536, 0])", 0),
        ("-2147483648 % -1", 0),
        ("-1 << 31", -(2**31)),
        ("[2147483647, 2147483647] @ [2147483647, -2147483647]", 0),
        ("(-2) ** 31", -(2**31)),
        ("lcm(65536, 0)", 0),
        ("lcm(0, 12)", 0),
        ("gcd(0, 12)", 12),
        ("gcd(12, 0)", 12),
        ("gcd(0, 0)", 0),
        ("mean(range(300))", 149),
    ],
)
def test_only_results_must_fit(text: str, value: int, calculator: Calculator) -> None:
    assert calculator.evaluate(text).value == value


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("1 + x", 5, "unknown name 'x'"),
        ("summ([1])", 1, "no function 'summ'; did you mean 'sum'?"),
        ("sort([1], up)", 11, "unknown name 'up'"),
        ("sum([1], axes=0)", 15, "sum has no argument 'axes'; did you mean 'axis'?"),
        ("1 + [1, 2] * [1, 2, 3]", 5, "shapes do not fit: a vector of 2 and a vector of 3"),
        ("[[1, 2]] @ [[1, 2]]", 1, "shapes do not fit: a 1x2 matrix @ a 1x2 matrix"),
        ("2 @ [1]", 1, "@ takes vectors and matrices: a scalar and a vector of 1; scalars multiply "
         "with *"),
        ("[[1, 2], [3]]", 10, "elements of one list differ: a vector of 2 and a vector of 1"),
        ("[[[1]]]", 1, "lists are nested two deep at most"),
        ("[]", 1, "an empty list; lists hold at least one number"),
        ("gcd(1)", 1, "gcd takes 2 arguments, 1 given: gcd(x, y)"),
        ("sum()", 1, "sum takes at least one argument, 0 given: sum(x), sum(m, axis)"),
        ("sum([1, 2], 2)", 13, "a vector of 2 has no axis 2"),
        ("sum(1, [2])", 8, "sum takes one array or several scalars; this is a vector of 1"),
        ("sort([[1]])", 6, "sort takes a vector; this is a 1x1 matrix"),
        ("2147483648", 1, "2147483648 does not fit 32 bits (-2147483648 to 2147483647)"),
        ("-2147483649", 1, "-2147483649 does not fit 32 bits (-2147483648 to 2147483647)"),
        ("range(1 + 1)", 7, "each argument of range must be a number written out, not computed"),
        ("range(3, 3)", 1, "range without a number; its last one is left out"),
        ("[1, 2][2]", 8, "no place 2 in a vector of 2; places are counted from 0"),
        ("3[0]", 3, "a scalar has no element with 1 places"),
        ("1" + " + 1" * 501, 1, "too long: 501 launches, at most 500"),
        ("diff([1])", 6, "diff takes at least two numbers"),
    ],
)  # fmt: skip
def test_what_does_not_fit(text: str, column: int, message: str, calculator: Calculator) -> None:
    with pytest.raises(ExpressionError) as caught:
        calculator.evaluate(text)
    assert (caught.value.message, caught.value.column) == (message, column)
    assert caught.value.exit_code == 2


def test_names_are_used_once() -> None:
    names = [n for operation in OPERATIONS for n in (operation.name, *operation.aliases)]
    assert len(names) == len(set(names)) == len(BY_NAME)


def test_every_operation_is_evaluated_twice(reference: ModuleType) -> None:
    assert set(reference.REFERENCE) == set(NAMES)


def test_the_documented_table_is_the_table() -> None:
    text = (ROOT / "docs" / "expressions.md").read_text(encoding="utf-8")
    assert operations_table() in text


def test_every_kernel_is_used_and_there() -> None:
    used = {call.kernel for operation in OPERATIONS for call in plan(operation.example).calls}
    assert used == {path.stem for path in KERNELS.glob("*.ptx")}
    link = ROOT / "kernels" / "expression"
    assert link.is_symlink()
    assert link.resolve() == KERNELS.resolve()


def test_a_small_machine_says_what_it_cannot() -> None:
    calculator = Calculator(qgpu.Device(profile="nano", engine="interpreter"))
    assert calculator.evaluate("sum(range(1, 21))").value == 210
    with pytest.raises(ExpressionError, match="machine 'nano' is too small: no place for an array"):
        calculator.evaluate("range(200)")
    assert calculator.evaluate("[1, 2] + [3, 4]").value == [4, 6]
    assert re.match("a 2x3", str(ValueType((2, 3))))
