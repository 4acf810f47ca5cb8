"""PTX text to AST: lark's LALR parser, nodes built on the fly, `.loc` lines linked."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedInput, VisitError

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.build_ast import AstBuilder
from qgpu_ptx.diagnostics import QgpuPtxError, SourceText
from qgpu_ptx.link_locations import link_locations
from qgpu_ptx.syntax_errors import explain_syntax_error


@cache
def _parser() -> Lark:
    grammar = resources.files("qgpu_ptx").joinpath("grammar/ptx.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def parse_ptx(text: str, filename: str = "<ptx>", compiler: str = "compiled") -> ast.Module:
    """The AST of a PTX file, or of the PTX that `compiler` made of a .cu file of that name.

    Accepts any `.version`; whether instructions are supported is not decided here. Raises
    PtxSyntaxError (a place in `text`, what was found, what was expected), and nothing else.
    """
    compiled = filename.endswith(".cu")
    source = SourceText(f"{filename} ({compiler} PTX)" if compiled else filename, text, compiled)
    try:
        tree: Any = _parser().parse(text)
        module: ast.Module = AstBuilder(source).transform(tree)
    except UnexpectedInput as error:
        raise explain_syntax_error(source, error) from None
    except VisitError as error:
        if isinstance(error.orig_exc, QgpuPtxError):
            raise error.orig_exc from None
        raise
    return link_locations(module, source)
