"""The text of an expression to its syntax tree, with lark's LALR parser.

Neither the parser nor what follows recurses, so that no nesting is too deep.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from qgpu_run.expression.errors import ExpressionError, Span
from qgpu_run.expression.syntax import Apply, Array, Number, Syntax, Word

MAX_CHARACTERS = 10_000

COMPARISONS = {
    "==": "equal", "!=": "not_equal", "≠": "not_equal", "<": "less", "<=": "less_equal",
    "≤": "less_equal", ">": "greater", ">=": "greater_equal", "≥": "greater_equal",
}  # fmt: skip

POWERS = {"square": 2, "cube": 3}

TRUTHS = {"true": 1, "false": 0}

_INTEGER = re.compile(r"0|[1-9][0-9]*|0[xX][0-9a-fA-F]+")
_PREFIX = re.compile(r"^(np|numpy|math)\.")
_BRACKETS = {")": "(", "]": "["}


def parse(source: str) -> Syntax:
    """The syntax tree of an expression.

    Raises:
        ExpressionError: it is malformed.
    """
    if len(source) > MAX_CHARACTERS:
        raise ExpressionError(
            f"too long: {len(source)} characters, at most {MAX_CHARACTERS}", source, Span(0, 1)
        )
    if not source.strip():
        raise ExpressionError("the expression is empty", source, Span(0, 1))
    try:
        tree: Any = _parser().parse(source)
    except UnexpectedInput as error:
        raise _explain(source, error) from None
    nodes: dict[int, Syntax] = {}
    builder = _Builder(source, nodes)
    for part in tree.iter_subtrees():
        if part.data not in ("arguments", "elements", "option"):
            nodes[id(part)] = builder.node(part)
    return nodes[id(tree)]


@cache
def _parser() -> Lark:
    grammar = resources.files("qgpu_run.expression").joinpath("grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)


class _Builder:
    """Makes the node of a lark tree whose parts have theirs."""

    def __init__(self, source: str, nodes: dict[int, Syntax]) -> None:
        self._source, self._nodes = source, nodes

    def node(self, tree: Any) -> Syntax:
        span = Span(tree.meta.start_pos, tree.meta.end_pos)
        parts = tree.children
        match tree.data:
            case "number":
                return Number(self._integer(parts[0], span), span)
            case "word":
                name = str(parts[0])
                if name.lower() in TRUTHS:
                    return Number(TRUTHS[name.lower()], span, truth=True)
                return Word(_PREFIX.sub("", name), span)
            case "group" | "positive":
                return self._nodes[id(parts[0])]
            case "array":
                items = parts[0].children if parts else []
                return Array(tuple(self._nodes[id(item)] for item in items), span)
            case "call":
                return self._call(parts, span)
            case "chain":
                return self._chain(parts, span)
            case "negative":
                return self._negative(parts[0], span)
            case "square" | "cube":
                exponent = Number(POWERS[tree.data], Span(span.end - 1, span.end))
                return Apply("power", (self._nodes[id(parts[0])], exponent), span, exponent.span)
        operands = tuple(self._nodes[id(part)] for part in parts if isinstance(part, Tree))
        return Apply(tree.data, operands, span, self._operator_span(operands, span))

    @staticmethod
    def _operator_span(operands: tuple[Syntax, ...], span: Span) -> Span:
        """Roughly where an operator stands: what is between its operands."""
        if len(operands) == 1:
            return span
        return Span(operands[0].span.end, max(operands[1].span.start, operands[0].span.end + 1))

    def _integer(self, token: Token, span: Span) -> int:
        text = str(token)
        if not _INTEGER.fullmatch(text):
            if text.isdigit():
                message = f"{text} begins with 0; commas separate numbers, in 1,000 as well"
            elif re.fullmatch(r"[0-9]*\.?[0-9]*", text):
                message = f"{text} is no whole number; the GPU computes on integers"
            elif re.fullmatch(r"[0-9_]+", text):
                message = f"write {int(text.replace('_', '')[:20])} for {text}"
            else:
                message = f"{text} is no number"
            raise ExpressionError(message, self._source, span)
        if text.isdigit():
            # More digits than Python converts are too many here as well.
            return int(text[:20])
        return int(text[:30], 16)

    def _negative(self, operand: Any, span: Span) -> Syntax:
        inner = self._nodes[id(operand)]
        if isinstance(inner, Number) and operand.data == "number":
            return Number(-inner.value, span)
        return Apply("negative", (inner,), span, span)

    def _chain(self, parts: list[Any], span: Span) -> Syntax:
        """`a < b < c` is `a < b and b < c`, with one b."""
        links: list[Syntax] = []
        for k in range(1, len(parts), 2):
            left, right = self._nodes[id(parts[k - 1])], self._nodes[id(parts[k + 1])]
            sign = parts[k]
            at = Span(sign.start_pos, sign.end_pos)
            whole = Span(parts[k - 1].meta.start_pos, parts[k + 1].meta.end_pos)
            links.append(Apply(COMPARISONS[str(sign)], (left, right), whole, at))
        result = links[0]
        for link in links[1:]:
            result = Apply("logical_and", (result, link), span, span)
        return result

    def _call(self, parts: list[Any], span: Span) -> Syntax:
        token = parts[0]
        operands: list[Syntax] = []
        options: list[tuple[str, Syntax]] = []
        for part in parts[1].children if len(parts) > 1 else ():
            if part.data == "option":
                name, value = part.children
                options.append((str(name), self._nodes[id(value)]))
            elif options:
                at = Span(part.meta.start_pos, part.meta.end_pos)
                raise ExpressionError(
                    "an argument without a name behind one with a name", self._source, at
                )
            else:
                operands.append(self._nodes[id(part)])
        at = Span(token.start_pos, token.end_pos)
        name = _PREFIX.sub("", str(token))
        return Apply(name, tuple(operands), span, at, tuple(options))


def _explain(source: str, error: UnexpectedInput) -> ExpressionError:
    """One line on what does not belong there."""
    if isinstance(error, UnexpectedCharacters):
        place = error.pos_in_stream or 0
        character = source[place]
        if character == "=":
            return ExpressionError("'=' does not belong here; equality is '=='", source,
                                   Span(place, place + 1))  # fmt: skip
        if character in ")]":
            return _unexpected(source, place, place + 1)
        return ExpressionError(
            f"unexpected {character!r}: expressions are of numbers, operators and functions",
            source,
            Span(place, place + 1),
        )
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        start = error.token.start_pos or 0
        return _unexpected(source, start, start + len(error.token))
    opened = _open_brackets(source)
    if opened:
        return ExpressionError(
            f"'{source[opened[-1]]}' is not closed", source, Span(opened[-1], opened[-1] + 1)
        )
    end = len(source.rstrip())
    return ExpressionError("the expression ends too early", source, Span(end, end + 1))


def _unexpected(source: str, start: int, end: int) -> ExpressionError:
    text = source[start:end]
    message = f"unexpected '{text}'"
    if text in _BRACKETS:
        opened = _open_brackets(source[:start])
        if not opened:
            message += f": no '{_BRACKETS[text]}' before it"
        elif source[opened[-1]] != _BRACKETS[text]:
            message += f": the '{source[opened[-1]]}' before it is open"
    elif text == ",":
        message += ": commas separate numbers in lists and arguments, and nothing else"
    elif start == 0:
        message += " at the beginning"
    elif text == "=":
        message += "; equality is '=='"
    else:
        message += f" behind '{' '.join(source[:start].split())[-12:]}'"
    return ExpressionError(message, source, Span(start, end))


def _open_brackets(text: str) -> list[int]:
    """Where the brackets stand that are open at the end."""
    opened: list[int] = []
    for place, character in enumerate(text):
        if character in "([":
            opened.append(place)
        elif character in ")]" and opened and text[opened[-1]] == _BRACKETS[character]:
            opened.pop()
    return opened
