"""lark tree to AST nodes: one method per rule of grammar/ptx.lark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

from lark import Token, Transformer, v_args
from lark.tree import Meta

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import PtxSyntaxError, SourceText, Span


def _of(children: Sequence[object], kind: str) -> list[str]:
    """Texts of the tokens of one terminal among `children`."""
    return [str(c) for c in children if isinstance(c, Token) and c.type == kind]


def _nodes(children: Sequence[object], cls: type[Any]) -> tuple[Any, ...]:
    return tuple(c for c in children if isinstance(c, cls))


@v_args(meta=True)
class AstBuilder(Transformer[Token, ast.Module]):
    """Builds nodes bottom-up; raises PtxSyntaxError for what the grammar cannot rule out."""

    def __init__(self, source: SourceText) -> None:
        super().__init__()
        self._source = source

    def _span(self, meta: Meta) -> Span:
        if meta.empty:
            return self._source.span(0, 0)
        return self._source.span(meta.start_pos, meta.end_pos)

    def _int(self, token: Token | str, meta: Meta) -> int:
        text = str(token).removesuffix("U").lower()
        base = {"0x": 16, "0b": 2}.get(text[:2], 8 if text.startswith("0") and text != "0" else 10)
        # 66 characters hold 64 binary digits and their prefix; longer text cannot fit 64 bits.
        try:
            value = int(text, base) if len(text) <= 66 else 1 << 64
        except ValueError:
            raise PtxSyntaxError(
                f"'{token}' is not an octal integer", span=self._span(meta), found=str(token)
            ) from None
        if value >= 1 << 64:
            raise PtxSyntaxError(
                f"the integer {str(token)[:80]} does not fit 64 bits", span=self._span(meta)
            )
        return value

    # Operands

    def integer(self, meta: Meta, c: list[Any]) -> ast.Integer:
        value = self._int(c[-1], meta)
        return ast.Integer(-value if len(c) > 1 else value, span=self._span(meta))

    def float(self, meta: Meta, c: list[Any]) -> ast.Float:
        return ast.Float("".join(c), span=self._span(meta))

    def name(self, meta: Meta, c: list[Any]) -> ast.Name:
        component = str(c[1])[1:] if len(c) > 1 else None
        return ast.Name(str(c[0]), component, span=self._span(meta))

    def pair(self, meta: Meta, c: list[Any]) -> ast.Pair:
        return ast.Pair(c[0], c[1], span=self._span(meta))

    def negated(self, meta: Meta, c: list[Any]) -> ast.Negated:
        return ast.Negated(c[1], span=self._span(meta))

    def symbol_offset(self, meta: Meta, c: list[Any]) -> ast.SymbolOffset:
        return ast.SymbolOffset(c[0], c[1].value, span=self._span(meta))

    def vector(self, meta: Meta, c: list[Any]) -> ast.Vector:
        return ast.Vector(tuple(c), span=self._span(meta))

    def argument_list(self, meta: Meta, c: list[Any]) -> ast.ArgumentList:
        return ast.ArgumentList(tuple(c), span=self._span(meta))

    def address(self, meta: Meta, c: list[Any]) -> ast.Address:
        offset = c[1].value if len(c) > 1 else 0
        return ast.Address(c[0], offset, span=self._span(meta))

    def address_minus(self, meta: Meta, c: list[Any]) -> ast.Address:
        return ast.Address(c[0], -self._int(c[-1], meta), span=self._span(meta))

    # Statements

    def guard(self, meta: Meta, c: list[Any]) -> ast.Guard:
        return ast.Guard(str(c[-1]), len(c) > 1, span=self._span(meta))

    def instruction(self, meta: Meta, c: list[Any]) -> ast.Instruction:
        guard = c[0] if isinstance(c[0], ast.Guard) else None
        return ast.Instruction(
            opcode=_of(c, "ID")[0],
            modifiers=tuple(word[1:] for word in _of(c, "DOTWORD")),
            operands=tuple(x for x in c if isinstance(x, ast.Operand)),
            guard=guard,
            span=self._span(meta),
        )

    def label(self, meta: Meta, c: list[Any]) -> ast.Label:
        return ast.Label(str(c[0]), span=self._span(meta))

    def register_name(self, meta: Meta, c: list[Any]) -> ast.RegisterName:
        count = self._int(c[1], meta) if len(c) > 1 else None
        if count is not None and count > 1 << 20:
            raise PtxSyntaxError(f"{count} registers are too many", span=self._span(meta))
        return ast.RegisterName(str(c[0]), count, span=self._span(meta))

    def registers(self, meta: Meta, c: list[Any]) -> ast.Registers:
        words = [word[1:] for word in _of(c, "DOTWORD")]
        vector, type_ = self._vector_and_type(words, meta)
        return ast.Registers(type_, _nodes(c, ast.RegisterName), vector, span=self._span(meta))

    def _vector_and_type(self, words: list[str], meta: Meta) -> tuple[int, str]:
        vector = 1
        if words and words[0] in ("v2", "v4"):
            vector = int(words.pop(0)[1:])
        if len(words) != 1:
            raise PtxSyntaxError(
                f"a declaration has one type, this one has {len(words)}",
                span=self._span(meta),
                expected=["one type such as .b32"],
            )
        return vector, words[0]

    def branch_targets(self, meta: Meta, c: list[Any]) -> ast.BranchTargets:
        kind = cast(Literal["branchtargets", "calltargets"], str(c[1])[1:])
        return ast.BranchTargets(str(c[0]), tuple(map(str, c[2:])), kind, span=self._span(meta))

    def call_prototype(self, meta: Meta, c: list[Any]) -> ast.CallPrototype:
        returns, parameters = self._signature(c)
        directives = _nodes(c, ast.PerformanceDirective)
        return ast.CallPrototype(str(c[0]), returns, parameters, directives, span=self._span(meta))

    def block(self, meta: Meta, c: list[Any]) -> ast.Block:
        return ast.Block(tuple(_flatten(c)), span=self._span(meta))

    # Variables and parameters

    def word_attribute(self, meta: Meta, c: list[Any]) -> tuple[str, object]:
        return ("word", str(c[0])[1:])

    def align_attribute(self, meta: Meta, c: list[Any]) -> tuple[str, object]:
        return ("align", self._int(c[1], meta))

    def opaque_attribute(self, meta: Meta, c: list[Any]) -> tuple[str, object]:
        return ("attribute", str(c[1])[1:])

    def dimension(self, meta: Meta, c: list[Any]) -> tuple[str, object]:
        return ("dimension", self._int(c[0], meta) if c else None)

    def symbol_value(self, meta: Meta, c: list[Any]) -> ast.SymbolValue:
        offset = c[1].value if len(c) > 1 else 0
        return ast.SymbolValue(str(c[0]), offset, span=self._span(meta))

    def wrapped_symbol_value(self, meta: Meta, c: list[Any]) -> ast.SymbolValue:
        offset = c[2].value if len(c) > 2 else 0
        return ast.SymbolValue(str(c[1]), offset, str(c[0]), span=self._span(meta))

    def initializer_list(self, meta: Meta, c: list[Any]) -> ast.InitializerList:
        return ast.InitializerList(tuple(c), span=self._span(meta))

    def declarator(self, meta: Meta, c: list[Any]) -> tuple[str, object]:
        dimensions = tuple(x[1] for x in c if isinstance(x, tuple))
        initializer = c[-1] if isinstance(c[-1], ast.Node) else None
        return ("declarator", (str(c[0]), dimensions, initializer, self._span(meta)))

    def variables(self, meta: Meta, c: list[Any]) -> list[ast.Variable]:
        linkage = tuple(word[1:] for word in _of(c, "LINKAGE"))
        space = _of(c, "SPACE")[0][1:]
        attributes = [x for x in c if isinstance(x, tuple) and x[0] != "declarator"]
        return [
            self._variable(space, attributes, x[1], linkage, meta)
            for x in c
            if isinstance(x, tuple) and x[0] == "declarator"
        ]

    def parameter(self, meta: Meta, c: list[Any]) -> ast.Variable:
        dimensions = tuple(x[1] for x in c if isinstance(x, tuple) and x[0] == "dimension")
        attributes = [x for x in c if isinstance(x, tuple) and x[0] != "dimension"]
        declarator = (_of(c, "ID")[0], dimensions, None, self._span(meta))
        return self._variable(str(c[0])[1:], attributes, declarator, (), meta)

    def _variable(
        self, space: str, attributes: list[Any], declarator: Any, linkage: Any, meta: Meta
    ) -> ast.Variable:
        name, dimensions, initializer, span = declarator
        words: list[str] = []
        aligns: list[int | None] = [None, None]
        pointer_words: list[str] = []
        pointer = False
        for kind, value in attributes:
            if kind == "align":
                aligns[int(pointer)] = value
            elif kind == "word" and value == "ptr":
                pointer = True
            elif kind == "word":
                (pointer_words if pointer else words).append(value)
        vector, type_ = self._vector_and_type(words, meta)
        for align in aligns:
            if align is not None and (align == 0 or align & (align - 1)):
                raise PtxSyntaxError("an alignment is a power of two", span=self._span(meta))
        if len(pointer_words) > 1:
            raise PtxSyntaxError(".ptr takes one state space", span=self._span(meta))
        return ast.Variable(
            space=space,
            type=type_,
            name=name,
            align=aligns[0],
            vector=vector,
            dimensions=dimensions,
            initializer=initializer,
            linkage=linkage,
            pointer=pointer,
            pointer_space=pointer_words[0] if pointer_words else None,
            pointer_align=aligns[1],
            attributes=tuple(str(v) for k, v in attributes if k == "attribute"),
            span=span,
        )

    # Debugging directives, pragmas

    def file(self, meta: Meta, c: list[Any]) -> ast.File:
        numbers = [self._int(text, meta) for text in _of(c, "INT")]
        stamp = (numbers[1], numbers[2]) if len(numbers) == 3 else None
        return ast.File(numbers[0], _of(c, "STRING")[0][1:-1], stamp, span=self._span(meta))

    def inlined(self, meta: Meta, c: list[Any]) -> ast.Inlined:
        keywords = _of(c, "ID")
        if (keywords[0], keywords[2]) != ("function_name", "inlined_at"):
            raise PtxSyntaxError(
                f"found '{keywords[0]} ... {keywords[2]}' in .loc",
                span=self._span(meta),
                expected=["function_name LABEL, inlined_at FILE LINE COLUMN"],
            )
        *offset, file, line, column = (self._int(text, meta) for text in _of(c, "INT"))
        at = (keywords[1], offset[0] if offset else 0, file, line, column)
        return ast.Inlined(*at, span=self._span(meta))

    def loc(self, meta: Meta, c: list[Any]) -> ast.Location:
        index, line, column = (self._int(text, meta) for text in _of(c, "INT"))
        inlined = c[-1] if isinstance(c[-1], ast.Inlined) else None
        return ast.Location(index, line, column, inlined, span=self._span(meta))

    def pragma(self, meta: Meta, c: list[Any]) -> ast.Pragma:
        return ast.Pragma(tuple(t[1:-1] for t in _of(c, "STRING")), span=self._span(meta))

    def section_value(self, meta: Meta, c: list[Any]) -> str:
        text = self._span(meta).text
        return "".join(text.split())

    def section_label(self, meta: Meta, c: list[Any]) -> str:
        return f"{c[0]}:"

    def section_data(self, meta: Meta, c: list[Any]) -> str:
        return f"{c[0]} {','.join(c[1:])}"

    def section(self, meta: Meta, c: list[Any]) -> ast.Section:
        return ast.Section(str(c[1])[1:], tuple(map(str, c[2:])), span=self._span(meta))

    # Functions and module

    def performance(self, meta: Meta, c: list[Any]) -> ast.PerformanceDirective:
        values = tuple(self._int(t, meta) for t in c[1:])
        return ast.PerformanceDirective(str(c[0])[1:], values, span=self._span(meta))

    def performance_pragma(self, meta: Meta, c: list[Any]) -> ast.PerformanceDirective:
        strings = tuple(t[1:-1] for t in _of(c, "STRING"))
        return ast.PerformanceDirective("pragma", (), strings, span=self._span(meta))

    def returns(self, meta: Meta, c: list[Any]) -> tuple[str, object]:
        return ("returns", tuple(c))

    def parameters(self, meta: Meta, c: list[Any]) -> tuple[str, object]:
        return ("parameters", tuple(c))

    @staticmethod
    def _signature(c: list[Any]) -> tuple[Any, Any]:
        parts: dict[str, Any] = dict(x for x in c if isinstance(x, tuple))
        return parts.get("returns", ()), parts.get("parameters", ())

    def function(self, meta: Meta, c: list[Any]) -> ast.Function:
        returns, parameters = self._signature(c)
        return ast.Function(
            kind=cast(Literal["entry", "func"], _of(c, "FUNCTION_KIND")[0][1:]),
            name=_of(c, "ID")[0],
            parameters=parameters,
            returns=returns,
            linkage=tuple(word[1:] for word in _of(c, "LINKAGE")),
            directives=_nodes(c, ast.PerformanceDirective),
            body=next(iter(_nodes(c, ast.Block)), None),
            span=self._span(meta),
        )

    def version(self, meta: Meta, c: list[Any]) -> tuple[str, object]:
        return ("version", str(c[1]))

    def target(self, meta: Meta, c: list[Any]) -> tuple[str, object]:
        return ("target", tuple(_of(c, "ID")))

    def address_size(self, meta: Meta, c: list[Any]) -> tuple[str, object]:
        bits = self._int(c[1], meta)
        if bits not in (32, 64):
            raise PtxSyntaxError(
                f".address_size {bits}", span=self._span(meta), expected=["32", "64"]
            )
        return ("address_size", bits)

    def start(self, meta: Meta, c: list[Any]) -> ast.Module:
        header: dict[str, Any] = dict(x for x in c if isinstance(x, tuple))
        # Without .address_size the default is 32 bits (PTX ISA, PTX Module Directives).
        return ast.Module(
            version=header.get("version"),
            targets=header.get("target", ()),
            address_size=header.get("address_size", 32),
            declarations=tuple(x for x in _flatten(c) if isinstance(x, ast.Declaration)),
            span=self._source.span(0, len(self._source.text)),
        )


def _flatten(children: list[Any]) -> list[Any]:
    """`variables` gives a list, since one declaration may hold several names."""
    flat: list[Any] = []
    for child in children:
        flat.extend(child if isinstance(child, list) else [child])
    return flat
