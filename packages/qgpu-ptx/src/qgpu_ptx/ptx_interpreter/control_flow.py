"""Branches, calls and ends (PTX ISA, "Control Flow Instructions")."""

from __future__ import annotations

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import (
    CallDepthError,
    ExecutionError,
    OperandError,
    TrapError,
    UnsupportedDeclarationError,
)
from qgpu_ptx.ptx_interpreter.instruction_table import Executor, Modifiers, instruction
from qgpu_ptx.ptx_interpreter.machine import Frame, Lane, Warp
from qgpu_ptx.ptx_interpreter.memory import WINDOW_BYTES
from qgpu_ptx.ptx_interpreter.operands import OperandDecoder
from qgpu_ptx.ptx_interpreter.scalar_types import U32, U64
from qgpu_ptx.ptx_interpreter.symbols import (
    FunctionSymbol,
    MemorySymbol,
    RegisterSymbol,
    TargetsSymbol,
)
from qgpu_ptx.ptx_interpreter.transfer import Copy, copy_back, copy_in

_REF = "Control Flow Instructions: "
# Hardware stacks are some kilobytes a thread; a kernel that nests deeper than this has run away.
MAX_CALL_DEPTH = 256


@instruction("bra", "uni?=uni", reference=_REF + "bra", control=True, operands="label")
def bra(d: OperandDecoder, m: Modifiers) -> Executor:
    """Goes to a label."""
    d.expect(1)
    target = d.label(d.operands[0])

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            lane.pc = target

    return execute


@instruction(
    "brx", "idx=idx uni?=uni", reference=_REF + "brx.idx", control=True, operands="u32 targets"
)
def brx(d: OperandDecoder, m: Modifiers) -> Executor:
    """Goes to one of a list of labels; an index beyond the list is an error."""
    d.expect(2)
    index = d.reader(d.operands[0], U32)
    targets = d.symbol(d.operands[1])
    if not isinstance(targets, TargetsSymbol):
        raise d.error("a .branchtargets list is needed here", d.operands[1])
    pcs = [d.label(ast.Name(name, span=d.operands[1].span)) for name in targets.labels]

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            number = index(lane)
            if number >= len(pcs):
                raise ExecutionError(
                    f"branch index {number} exceeds a list of {len(pcs)} targets", thread=lane.name
                )
            lane.pc = pcs[number]

    return execute


@instruction("exit", reference=_REF + "exit", control=True)
def exit_(d: OperandDecoder, m: Modifiers) -> Executor:
    """Ends the thread."""
    d.expect(0)
    return lambda warp, lanes: warp.cta.exit(lanes)


@instruction("trap", reference="Miscellaneous Instructions: trap")
def trap(d: OperandDecoder, m: Modifiers) -> Executor:
    """Aborts the launch: raises TrapError."""
    d.expect(0)

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        raise TrapError("the kernel executed trap", thread=lanes[0].name)

    return execute


@instruction("ret", "uni?=uni", reference=_REF + "ret", control=True)
def ret(d: OperandDecoder, m: Modifiers) -> Executor:
    """Returns from a function; in a kernel, ends the thread."""
    d.expect(0)

    def execute(warp: Warp, lanes: list[Lane]) -> None:
        ending = [lane for lane in lanes if len(lane.frames) == 1]
        for lane in lanes:
            if len(lane.frames) > 1:
                left = lane.pop()
                if left.on_return is not None:
                    left.on_return(lane, left)
        if ending:
            warp.cta.exit(ending)

    return execute


def _argument_lists(
    d: OperandDecoder,
) -> tuple[tuple[ast.Operand, ...], ast.Operand, tuple[ast.Operand, ...]]:
    """Returns, callee and arguments of `(r), f, (a)`, each list optional."""
    operands = list(d.operands)
    returns: tuple[ast.Operand, ...] = ()
    if operands and isinstance(operands[0], ast.ArgumentList):
        returns = operands.pop(0).elements  # type: ignore[union-attr]
    if not operands:
        raise d.error("names no function")
    callee = operands.pop(0)
    arguments: tuple[ast.Operand, ...] = ()
    if operands and isinstance(operands[0], ast.ArgumentList):
        arguments = operands.pop(0).elements  # type: ignore[union-attr]
    return returns, callee, arguments


def _plan(
    d: OperandDecoder,
    formals: list[MemorySymbol | RegisterSymbol],
    actuals: tuple[ast.Operand, ...],
    what: str,
) -> list[Copy]:
    if len(formals) != len(actuals):
        raise d.error(f"the function has {len(formals)} {what}, {len(actuals)} given")
    copies: list[Copy] = []
    for formal, actual in zip(formals, actuals, strict=True):
        symbol = d.scope.find(actual.name) if isinstance(actual, ast.Name) else None
        if isinstance(symbol, MemorySymbol):
            if symbol.space != "param" or not isinstance(formal, MemorySymbol):
                raise d.error("an argument is a .param variable or a register", actual)
            if symbol.size != formal.size:
                raise d.error(f"{symbol.size} bytes given for {formal.size}", actual)
            copies.append(Copy(formal, symbol, actual))
        else:
            copies.append(Copy(formal, None, actual))
    return copies


@instruction(
    "call",
    "uni?=uni",
    reference=_REF + "call",
    control=True,
    operands="[(returns)] f [(arguments)]",
)
def call(d: OperandDecoder, m: Modifiers) -> Executor:
    """Calls a function by name, or through a register that holds its address."""
    returns, callee, arguments = _argument_lists(d)
    symbol = d.symbol(callee)
    program = d.program

    def enter(lane: Lane, function: ast.Function) -> None:
        if len(lane.frames) >= MAX_CALL_DEPTH:
            raise CallDepthError(
                f"calls are nested more than {MAX_CALL_DEPTH} deep", thread=lane.name
            )
        formal_returns, formal_parameters = program.signature(function.name)
        code = program.code(function.name)
        caller = lane.frame
        frame = Frame(
            code,
            [None] * code.registers,
            bytearray(code.param_bytes),
            -(-(caller.local_base + caller.code.local_bytes) // 16) * 16,
            return_pc=lane.pc,
        )
        if frame.local_base + code.local_bytes > WINDOW_BYTES:
            raise CallDepthError("local memory is exhausted", thread=lane.name)
        copy_in(d, lane, frame, _plan(d, formal_parameters, arguments, "parameters"))
        back = _plan(d, formal_returns, returns, "return values")
        frame.on_return = lambda lane, left: copy_back(d, lane, left, back)
        lane.push(frame)

    if isinstance(symbol, FunctionSymbol):
        function = symbol.function
        if function.body is None:
            raise UnsupportedDeclarationError(
                f"function '{function.name}' has no body in this module",
                span=callee.span,
                found=function.name,
                hint="library and system functions such as printf or malloc are not supported",
            )
        signature = program.signature(function.name)
        _plan(d, signature[1], arguments, "parameters")
        _plan(d, signature[0], returns, "return values")

        def execute(warp: Warp, lanes: list[Lane]) -> None:
            for lane in lanes:
                enter(lane, function)

        return execute
    type_ = U64 if program.module.address_size == 64 else U32
    read = d.reader(callee, type_)
    program.decode_all_addressed()

    def execute_indirect(warp: Warp, lanes: list[Lane]) -> None:
        for lane in lanes:
            target = program.function_at(read(lane))
            if target is None:
                raise ExecutionError("call of an address that is no function", thread=lane.name)
            try:
                enter(lane, target)
            except OperandError as error:
                raise ExecutionError(error.message, thread=lane.name) from None

    return execute_indirect
