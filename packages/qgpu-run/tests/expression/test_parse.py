"""Syntax: precedence is Python's, and what is wrong is said with its place."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qgpu_run.expression.errors import ExpressionError
from qgpu_run.expression.parse import COMPARISONS, MAX_CHARACTERS, parse
from qgpu_run.expression.syntax import Apply, Array, Number, Syntax, Word

PYTHON = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.FloorDiv: "floor_divide", ast.Mod: "remainder", ast.MatMult: "matmul", ast.Pow: "power",
    ast.LShift: "left_shift", ast.RShift: "right_shift", ast.BitOr: "bit_or",
    ast.BitAnd: "bit_and", ast.And: "logical_and", ast.Or: "logical_or", ast.Not: "logical_not",
    ast.USub: "negative", ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less",
    ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal",
}  # fmt: skip


def shown(node: Syntax) -> str:
    match node:
        case Number():
            return str(node.value)
        case Word():
            return node.name
        case Array():
            return f"[{' '.join(map(shown, node.items))}]"
        case Apply():
            options = [f"{name}={shown(value)}" for name, value in node.options]
            return f"({' '.join([node.name, *map(shown, node.operands), *options])})"


def python_shown(node: ast.expr) -> str:
    """Python's own reading of the same text."""

    def apply(kind: object, *operands: str) -> str:
        return f"({PYTHON[type(kind)]} {' '.join(operands)})"  # type: ignore[index]

    match node:
        case ast.Constant():
            return str(node.value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            return f"-{value}" if value else "0"
        case ast.UnaryOp():
            return apply(node.op, python_shown(node.operand))
        case ast.BinOp():
            return apply(node.op, python_shown(node.left), python_shown(node.right))
        case ast.BoolOp():
            first, *others = map(python_shown, node.values)
            for other in others:
                first = apply(node.op, first, other)
            return first
        case ast.Compare():
            values = [python_shown(v) for v in (node.left, *node.comparators)]
            links = [apply(op, *values[k : k + 2]) for k, op in enumerate(node.ops)]
            result = links[0]
            for link in links[1:]:
                result = f"(logical_and {result} {link})"
            return result
    raise AssertionError(ast.dump(node))


OPERATORS = "+ - * / // % @ ** << >> | & == != < <= > >= and or"
BINARY = OPERATORS.split()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_precedence_is_pythons(data: st.DataObject) -> None:
    text = ""
    for _ in range(data.draw(st.integers(1, 7))):
        text += data.draw(st.sampled_from(["", "", "", "- "])) + str(data.draw(st.integers(0, 9)))
        text += f" {data.draw(st.sampled_from(BINARY))} "
        if text.endswith(("and ", "or ")):
            text += data.draw(st.sampled_from(["", "not "]))
    text += "7"
    assert shown(parse(text)) == python_shown(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2^3^2", "(power 2 (power 3 2))"),
        ("-2²", "(negative (power 2 2))"),
        ("2³ × 3 ÷ 4 − 1", "(subtract (divide (multiply (power 2 3) 3) 4) 1)"),
        ("1 ≤ 2 ≠ 3", "(logical_and (less_equal 1 2) (not_equal 2 3))"),
        ("3 ≥ 2", "(greater_equal 3 2)"),
        ("[1, 2]·[3, 4]", "(dot_sign [1 2] [3 4])"),
        ("5! != 3", "(not_equal (factorial 5) 3)"),
        ("1 | 2 xor 3 & 4", "(bit_or 1 (bit_xor 2 (bit_and 3 4)))"),
        ("xor(1, 2)", "(xor 1 2)"),
        ("[[1, 2],].T @ x", "(matmul (transpose [[1 2]]) x)"),
        ("np.sum(m, axis=0)", "(sum m axis=0)"),
        ("sort(x, desc)[-1]", "(item (sort x desc) -1)"),
        ("true and False or TRUE", "(logical_or (logical_and 1 0) 1)"),
        (" ( ( 0x1F ) ) ", "31"),
        ("+5 - +3", "(subtract 5 3)"),
        ("- 2147483648", "-2147483648"),
        ("sum(\n1,\n2,)", "(sum 1 2)"),
    ],
)
def test_what_python_does_not_have(text: str, wanted: str) -> None:
    assert shown(parse(text)) == wanted


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "the expression is empty"),
        ("1 +", 4, "the expression ends too early"),
        ("(1 + 2", 1, "'(' is not closed"),
        ("[1, (2]", 7, "unexpected ']': the '(' before it is open"),
        ("1)", 2, "unexpected ')': no '(' before it"),
        ("1 2", 3, "unexpected '2' behind '1'"),
        ("1 = 2", 3, "unexpected '='; equality is '=='"),
        ("1 $ 2", 3, "unexpected '$': expressions are of numbers, operators and functions"),
        ("2 * 1.5", 5, "1.5 is no whole number; the GPU computes on integers"),
        ("1e5", 1, "1e5 is no number"),
        ("1_000", 1, "write 1000 for 1_000"),
        ("1,000", 2, "unexpected ',': commas separate numbers in lists and arguments, and nothing "
         "else"),
        ("sum(1,000)", 7, "000 begins with 0; commas separate numbers, in 1,000 as well"),
        ("sum(axis=0, 1)", 13, "an argument without a name behind one with a name"),
        ("* 2", 1, "unexpected '*' at the beginning"),
    ],
)  # fmt: skip
def test_errors_have_a_place(text: str, column: int, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.message == message
    assert caught.value.column == column
    _, line, caret = str(caught.value).split("\n")
    assert line == f"  {text}"
    assert caret.index("^") == column + 1


def test_nothing_is_nested_too_deep() -> None:
    half = MAX_CHARACTERS // 2 - 1
    assert shown(parse("(" * half + "7" + ")" * half)) == "7"
    parse("-" * half + "(1)")
    parse("[" * half + "1" + "]" * half)
    with pytest.raises(ExpressionError, match="too long: 10001 characters"):
        parse("1" * (MAX_CHARACTERS + 1))
    with pytest.raises(ExpressionError, match="is not closed"):
        parse("(" * MAX_CHARACTERS)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789+-*/%@^!<>=&|()[],.²×·T sumax\n", max_size=20))
def test_any_text_parses_or_is_refused(text: str) -> None:
    column = 1
    try:
        parse(text)
    except ExpressionError as error:
        column = error.column
    assert 1 <= column <= len(text) + 1


def test_a_long_line_is_shown_around_the_mistake() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("1 + " * 100 + "$ + 1")
    _, line, caret = str(caught.value).split("\n")
    assert line[caret.index("^")] == "$"
    assert len(line) <= 100


def test_a_message_names_no_more_than_a_part_of_what_is_long() -> None:
    with pytest.raises(ExpressionError, match=r"^9+…9+x is no number") as caught:
        parse("9" * 5000 + "x")
    assert len(caught.value.message) < 500


def test_every_comparison_has_a_function() -> None:
    assert set(COMPARISONS.values()) <= set(PYTHON.values())
