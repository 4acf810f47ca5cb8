"""CUDA places of PTX: each instruction gets the one that the last `.loc` before it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import CudaLocation, SourceText


def link_locations(module: ast.Module, source: SourceText) -> ast.Module:
    """The module with places in its instructions; `source` learns them too."""
    return _Linker(module, source).link()


class _Linker:
    def __init__(self, module: ast.Module, source: SourceText) -> None:
        self._module = module
        self._places = source.cuda_places
        files = dict(module.files)
        for function in module.functions:
            for statement in function.body.statements if function.body else ():
                if isinstance(statement, ast.File):
                    files[statement.index] = statement.name
        self._files = {index: _from_here(name) for index, name in files.items()}
        self._current: CudaLocation | None = None

    def link(self) -> ast.Module:
        declarations = tuple(
            self._function(d) if isinstance(d, ast.Function) else d
            for d in self._module.declarations
        )
        return replace(self._module, declarations=declarations)

    def _function(self, function: ast.Function) -> ast.Function:
        if function.body is None:
            return function
        # What is said of the whole function is said of its first line.
        first = (s for s in function.body.statements if isinstance(s, ast.Location))
        self._move(function, next((self._named(s) for s in first), None))
        self._move(function.body, None)
        body = self._block(function.body)
        if function.span:
            self._places.append((function.span.end, None))
        return replace(function, body=body)

    def _block(self, block: ast.Block) -> ast.Block:
        statements: list[ast.Statement] = []
        for statement in block.statements:
            match statement:
                case ast.Location():
                    self._move(statement, self._named(statement))
                    statements.append(statement)
                case ast.Instruction() if self._current is not None:
                    statements.append(replace(statement, cuda_location=self._current))
                case ast.Block():
                    statements.append(self._block(statement))
                case _:
                    statements.append(statement)
        return replace(block, statements=tuple(statements))

    def _named(self, location: ast.Location) -> CudaLocation | None:
        # Line 0 marks code without a source line (PTX ISA, .loc); keep none for it.
        file = self._files.get(location.file_index, f"<file {location.file_index}>")
        return CudaLocation(file, location.line, location.column) if location.line else None

    def _move(self, node: ast.Node, place: CudaLocation | None) -> None:
        """From this node on, `place` holds."""
        self._current = place
        if node.span:
            self._places.append((node.span.start, place))


def _from_here(name: str) -> str:
    """A file's name as a user gives it: compilers write whole paths."""
    path, here = Path(name), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else name
