"""PTX text to AST: lark's LALR parser, nodes built on the fly, `.loc` lines linked."""

from __future__ import annotations

import dataclasses
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedInput, VisitError

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.build_ast import AstBuilder
from qgpu_ptx.diagnostics import CudaLocation, QgpuPtxError, SourceText
from qgpu_ptx.syntax_errors import explain_syntax_error


@cache
def _parser() -> Lark:
    grammar = resources.files("qgpu_ptx").joinpath("grammar/ptx.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def parse_ptx(text: str, filename: str = "<ptx>") -> ast.Module:
    """The AST of a PTX file.

    Accepts any `.version`; whether instructions are supported is not decided here. Raises
    PtxSyntaxError (a place in `text`, what was found, what was expected), and nothing else.
    """
    source = SourceText(filename, text)
    try:
        tree: Any = _parser().parse(text)
        module: ast.Module = AstBuilder(source).transform(tree)
    except UnexpectedInput as error:
        raise explain_syntax_error(source, error) from None
    except VisitError as error:
        if isinstance(error.orig_exc, QgpuPtxError):
            raise error.orig_exc from None
        raise
    return _link_locations(module)


def _link_locations(module: ast.Module) -> ast.Module:
    """Gives each instruction the CUDA place that the last `.loc` before it names."""
    files = dict(module.files)
    for function in module.functions:
        for statement in function.body.statements if function.body else ():
            if isinstance(statement, ast.File):
                files[statement.index] = statement.name
    declarations = tuple(
        dataclasses.replace(d, body=_link_block(d.body, files, None)[0])
        if isinstance(d, ast.Function) and d.body
        else d
        for d in module.declarations
    )
    return dataclasses.replace(module, declarations=declarations)


def _link_block(
    block: ast.Block, files: dict[int, str], current: CudaLocation | None
) -> tuple[ast.Block, CudaLocation | None]:
    statements: list[ast.Statement] = []
    for statement in block.statements:
        match statement:
            case ast.Location(file_index=index, line=line, column=column):
                # Line 0 marks code without a source line (PTX ISA, .loc); keep none for it.
                file = files.get(index, f"<file {index}>")
                current = CudaLocation(file, line, column) if line else None
                statements.append(statement)
            case ast.Instruction() if current is not None:
                statements.append(dataclasses.replace(statement, cuda_location=current))
            case ast.Block():
                inner, current = _link_block(statement, files, current)
                statements.append(inner)
            case _:
                statements.append(statement)
    return dataclasses.replace(block, statements=tuple(statements)), current
