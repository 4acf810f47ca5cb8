"""Operands to closures: a reader gives a lane's value, a writer sets it, an address adds up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import OperandError, PtxNameError
from qgpu_ptx.ptx_interpreter.machine import Lane, Writer
from qgpu_ptx.ptx_interpreter.scalar_types import PRED, ScalarType
from qgpu_ptx.ptx_interpreter.special_registers import special_register
from qgpu_ptx.ptx_interpreter.symbols import (
    FunctionSymbol,
    LabelSymbol,
    MemorySymbol,
    RegisterSymbol,
    Scope,
    Symbol,
    VectorRegisterSymbol,
)

if TYPE_CHECKING:
    from qgpu_ptx.ptx_interpreter.program import Program

Reader = Callable[[Lane], int]


class OperandDecoder:
    """Reads the operands of one instruction; every method raises OperandError or PtxNameError."""

    def __init__(self, program: Program, scope: Scope, node: ast.Instruction, index: int) -> None:
        self.program = program
        self.scope = scope
        self.node = node
        self.index = index
        self.operands = node.operands

    def error(self, message: str, operand: ast.Node | None = None) -> OperandError:
        """An OperandError at an operand, or at the whole instruction."""
        span = (operand.span if operand else None) or self.node.span
        return OperandError(f"{self.node.mnemonic}: {message}", span=span)

    def expect(self, *counts: int) -> None:
        """Checks the number of operands."""
        if len(self.operands) not in counts:
            wanted = " or ".join(map(str, counts))
            raise self.error(f"takes {wanted} operands, {len(self.operands)} given")

    def symbol(self, operand: ast.Node) -> Symbol:
        """What a name operand stands for."""
        if not isinstance(operand, ast.Name):
            raise self.error("a name is needed here", operand)
        key = operand.name if operand.component is None else f"{operand.name}.{operand.component}"
        symbol = self.scope.find(key)
        if symbol is None:
            raise PtxNameError(f"'{key}' is not declared", span=operand.span, found=key)
        return symbol

    def register(self, operand: ast.Node) -> RegisterSymbol:
        """The register that an operand names."""
        symbol = self.symbol(operand)
        if not isinstance(symbol, RegisterSymbol):
            raise self.error("a register is needed here", operand)
        return symbol

    def _check_width(
        self, register: RegisterSymbol, type_: ScalarType, operand: ast.Node, relaxed: bool
    ) -> None:
        # A register's type and the instruction's type agree when their widths do; ld, st and cvt
        # also take wider registers (PTX ISA, "Operand Size Exceeding Instruction-Type Size").
        predicate = register.type is PRED
        fits = register.type.bits == type_.bits or (relaxed and register.type.bits > type_.bits)
        if predicate != (type_ is PRED) or not fits:
            raise self.error(
                f"a .{register.type.name} register cannot be a .{type_.name} operand", operand
            )

    def reader(self, operand: ast.Operand, type_: ScalarType, *, relaxed: bool = False) -> Reader:
        """Reads a source operand as an integer of `type_`."""
        match operand:
            case ast.Integer(value=value):
                constant = type_.value(value)
                return lambda lane: constant
            case ast.Float():
                raise self.error("a floating-point constant is not supported", operand)
            case ast.Negated(name=name):
                if type_ is not PRED:
                    raise self.error("only predicates can be negated", operand)
                inner = self.reader(name, type_)
                return lambda lane: inner(lane) ^ 1
            case ast.Name():
                return self._name_reader(operand, type_, relaxed)
            case ast.SymbolOffset(name=name, offset=offset):
                base = self._name_reader(name, type_, relaxed)
                return lambda lane: type_.value(base(lane) + offset)
            case _:
                raise self.error(f"'{operand}' cannot be a source operand", operand)

    def _name_reader(self, name: ast.Name, type_: ScalarType, relaxed: bool) -> Reader:
        key = name.name if name.component is None else f"{name.name}.{name.component}"
        symbol = self.scope.find(key)
        if symbol is None:
            special = special_register(key)
            if special is None:
                raise PtxNameError(f"'{key}' is not declared", span=name.span, found=key)
            return lambda lane: type_.value(special(lane))
        if isinstance(symbol, MemorySymbol):
            address = self.symbol_address(symbol)
            return lambda lane: type_.value(address(lane))
        if isinstance(symbol, FunctionSymbol):
            number = self.program.function_address(symbol.function)
            return lambda lane: number
        if not isinstance(symbol, RegisterSymbol):
            raise self.error("a register, constant or variable is needed here", name)
        self._check_width(symbol, type_, name, relaxed)
        index, value_of = symbol.index, type_.value

        def read(lane: Lane) -> int:
            value = lane.registers[index]
            return value_of(lane.unwritten(key) if value is None else value)

        return read

    def writer(self, operand: ast.Operand, type_: ScalarType, *, relaxed: bool = False) -> Writer:
        """Writes a destination register; `_` throws the value away."""
        if isinstance(operand, ast.Name) and operand.name == "_":
            return lambda lane, value: None
        register = self.register(operand)
        self._check_width(register, type_, operand, relaxed)
        index, mask = register.index, register.type.mask
        if register.type.bits == type_.bits:

            def write(lane: Lane, value: int) -> None:
                lane.registers[index] = value & mask

            return write

        def extend(lane: Lane, value: int) -> None:
            lane.registers[index] = type_.value(value) & mask

        return extend

    def elements(self, operand: ast.Operand) -> tuple[ast.Operand, ...]:
        """The elements of `{a, b}` or of a vector register; a scalar is one element."""
        if isinstance(operand, ast.Vector):
            return operand.elements
        if isinstance(operand, ast.Name):
            symbol = self.scope.find(operand.name)
            if operand.component is None and isinstance(symbol, VectorRegisterSymbol):
                return tuple(
                    ast.Name(operand.name, component, span=operand.span)
                    for component in symbol.elements
                )
        return (operand,)

    def pair(self, operand: ast.Operand) -> tuple[ast.Operand, ast.Operand | None]:
        """`d|p` as two operands, `d` as one and None."""
        if isinstance(operand, ast.Pair):
            return operand.first, operand.second
        return operand, None

    @staticmethod
    def symbol_address(symbol: MemorySymbol) -> Reader:
        """The address of a variable in its own state space."""
        if symbol.space == "local":
            return lambda lane: lane.frame.local_base + symbol.address
        return lambda lane: symbol.address

    def address(self, operand: ast.Operand) -> tuple[Reader, str | None]:
        """The address of `[base+offset]`, and the variable's state space if the base is one."""
        if not isinstance(operand, ast.Address):
            raise self.error("an address in brackets is needed here", operand)
        base, offset = operand.base, operand.offset
        if isinstance(base, ast.Integer):
            constant = base.value + offset
            return (lambda lane: constant), None
        symbol = self.symbol(base)
        if isinstance(symbol, MemorySymbol):
            start = self.symbol_address(symbol)
            return (lambda lane: start(lane) + offset), symbol.space
        register = self.register(base)
        if register.type.bits not in (32, 64):
            raise self.error("an address register has 32 or 64 bits", operand)
        read, mask = self.reader(base, register.type), register.type.mask
        return (lambda lane: (read(lane) + offset) & mask), None

    def label(self, operand: ast.Operand) -> int:
        """The instruction index of a label."""
        symbol = self.symbol(operand)
        if not isinstance(symbol, LabelSymbol):
            raise self.error("a label is needed here", operand)
        return symbol.pc
