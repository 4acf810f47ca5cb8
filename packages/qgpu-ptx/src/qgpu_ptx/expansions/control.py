"""Control flow: bra brx call ret exit trap."""

from __future__ import annotations

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.expansions.arithmetic import check_count
from qgpu_ptx.expansions.registry import Modifiers, expansion
from qgpu_ptx.instruction_context import InstructionContext, Words
from qgpu_ptx.lowering_symbols import NameScope, ParameterBlock, RegisterVariable, TargetList
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES
from qgpu_ptx.ptx_interpreter.symbols import layout, scalar_type


@expansion("bra")
def bra(c: InstructionContext, m: Modifiers) -> None:
    """Goes to a label."""
    check_count(c, 1)
    c.b.jump(c.label(c.operands[0]))
    c.b.place(c.b.label("behind"))


@expansion("brx")
def brx(c: InstructionContext, m: Modifiers) -> None:
    """Goes to one of a list of labels, by comparing the index with each number."""
    check_count(c, 2)
    index = c.word(0, SCALAR_TYPES["u32"])
    targets = c.symbol(c.operands[1])
    if not isinstance(targets, TargetList):
        raise c.error("a .branchtargets list is needed here", c.operands[1])
    labels = [c.label(ast.Name(name, span=c.operands[1].span)) for name in targets.labels]
    for number, label in enumerate(labels[:-1]):
        otherwise = c.b.label("case")
        c.b.branch(c.b.compare("seteq", index, number), label, otherwise)
        c.b.place(otherwise)
    c.b.jump(labels[-1])
    c.b.place(c.b.label("behind"))


@expansion("exit")
def exit_(c: InstructionContext, m: Modifiers) -> None:
    """Ends the thread."""
    c.b.exit()
    c.b.place(c.b.label("behind"))


@expansion("ret")
def ret(c: InstructionContext, m: Modifiers) -> None:
    """Returns from a function; in a kernel, ends the thread."""
    c.kernel.ret()
    c.b.place(c.b.label("behind"))


@expansion("trap")
def trap(c: InstructionContext, m: Modifiers) -> None:
    """Ends the launch with a fault."""
    c.b.trap()
    c.b.place(c.b.label("behind"))


@expansion("call")
def call(c: InstructionContext, m: Modifiers) -> None:
    """Expands a function in place."""
    operands = list(c.operands)
    returns: tuple[ast.Operand, ...] = ()
    if operands and isinstance(operands[0], ast.ArgumentList):
        returns = operands.pop(0).elements  # type: ignore[union-attr]
    if not operands:
        raise c.error("names no function")
    function = c.kernel.function(c, operands.pop(0))
    arguments: tuple[ast.Operand, ...] = ()
    if operands and isinstance(operands[0], ast.ArgumentList):
        arguments = operands.pop(0).elements  # type: ignore[union-attr]
    for what, formals, actuals in (
        ("parameters", function.parameters, arguments),
        ("return values", function.returns, returns),
    ):
        if len(formals) != len(actuals):
            raise c.error(f"the function has {len(formals)} {what}, {len(actuals)} given")
    scope = NameScope(c.kernel.globals)
    for formal, actual in zip(function.parameters, arguments, strict=True):
        _copy_in(c, scope, formal, actual)
    for formal in function.returns:
        if formal.space == "reg":
            type_ = scalar_type(formal.type, formal.span)
            scope.names[formal.name] = RegisterVariable(type_, 2)
        else:
            scope.names[formal.name] = ParameterBlock(layout(formal, 0)[1])
    after = c.b.label(f"after_{function.name}")
    c.kernel.expand(function, scope, after)
    c.b.place(after)
    for formal, actual in zip(function.returns, returns, strict=True):
        _copy_back(c, scope, formal, actual)


def _block(c: InstructionContext, operand: ast.Operand) -> ParameterBlock | None:
    symbol = c.scope.find(operand.name) if isinstance(operand, ast.Name) else None
    return symbol if isinstance(symbol, ParameterBlock) else None


def _copy_in(
    c: InstructionContext, scope: NameScope, formal: ast.Variable, actual: ast.Operand
) -> None:
    given = _block(c, actual)
    if formal.space == "reg":
        type_ = scalar_type(formal.type, formal.span)
        # Two assignments: a parameter may be set again in the function.
        variable = RegisterVariable(type_, 2)
        scope.names[formal.name] = variable
        c.kernel.set_words(variable, c.read(actual, type_))
        return
    block = ParameterBlock(layout(formal, 0)[1])
    scope.names[formal.name] = block
    if given is None:
        _fill(c, block, c.read(actual, SCALAR_TYPES[f"b{8 * block.size}"]))
        return
    if given.size != block.size:
        raise c.error(f"{given.size} bytes given for {block.size}", actual)
    if given.data is not None:
        block.data = given.data
        return
    for index, register in list(given.words.items()):
        c.b.assign(block.word(4 * index, c.b.variable), register)


def _fill(c: InstructionContext, block: ParameterBlock, words: Words) -> None:
    for index, word in enumerate(words):
        c.b.assign(block.word(4 * index, c.b.variable), word)


def _copy_back(
    c: InstructionContext, scope: NameScope, formal: ast.Variable, actual: ast.Operand
) -> None:
    result = scope.names[formal.name]
    target = _block(c, actual)
    if isinstance(result, RegisterVariable):
        c.write(actual, result.type, c.kernel.register_words(result))
        return
    assert isinstance(result, ParameterBlock)
    if target is None:
        type_ = SCALAR_TYPES[f"b{8 * result.size}"]
        words = [result.word(offset, c.b.variable) for offset in range(0, result.size, 4)]
        c.write(actual, type_, (words[0], words[1]) if len(words) == 2 else (words[0],))
        return
    for index, register in list(result.words.items()):
        c.b.assign(target.word(4 * index, c.b.variable), register)
