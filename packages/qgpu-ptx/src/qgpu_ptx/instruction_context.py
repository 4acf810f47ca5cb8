"""One PTX instruction being lowered: its operands as IR values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import OperandError, PtxNameError
from qgpu_ptx.ir import WORD, ZERO, Imm, Reg, Value
from qgpu_ptx.ir_builder import Condition, IrBuilder
from qgpu_ptx.lowering_errors import LoweringError
from qgpu_ptx.lowering_symbols import (
    CodeLabel,
    MemoryVariable,
    NameScope,
    ParameterBlock,
    RegisterVariable,
    Symbol,
    VectorVariable,
    operand_key,
)
from qgpu_ptx.ptx_interpreter.scalar_types import PRED, ScalarType

if TYPE_CHECKING:
    from qgpu_ptx.ast_to_ir import KernelLowering

Words = tuple[Value, ...]
"""A value of up to 32 bits as one word, of 64 bits as its low and its high word."""


class InstructionContext:
    """Reads and writes the operands of one instruction.

    Values narrower than a word are held zero-extended in registers; `read` extends them as their
    type says. Every method raises OperandError, PtxNameError or LoweringError.
    """

    def __init__(self, kernel: KernelLowering, scope: NameScope, node: ast.Instruction) -> None:
        self.kernel = kernel
        self.scope = scope
        self.node = node
        self.operands = node.operands

    @property
    def b(self) -> IrBuilder:
        return self.kernel.builder

    def error(self, message: str, operand: ast.Node | None = None) -> OperandError:
        """An OperandError at an operand, or at the whole instruction."""
        span = (operand.span if operand else None) or self.node.span
        return OperandError(f"{self.node.mnemonic}: {message}", span=span)

    def unsupported(self, message: str, hint: str | None = None) -> LoweringError:
        """A LoweringError at this instruction."""
        return LoweringError(
            f"{self.node.mnemonic}: {message}",
            span=self.node.span,
            found=self.node.mnemonic,
            hint=hint,
        )

    def symbol(self, operand: ast.Node) -> Symbol:
        """What a name operand stands for."""
        if not isinstance(operand, ast.Name):
            raise self.error("a name is needed here", operand)
        symbol = self.scope.find(operand_key(operand))
        if symbol is None:
            key = operand_key(operand)
            raise PtxNameError(f"'{key}' is not declared", span=operand.span, found=key)
        return symbol

    def label(self, operand: ast.Node) -> str:
        """The IR block of a label."""
        symbol = self.symbol(operand)
        if not isinstance(symbol, CodeLabel):
            raise self.error("a label is needed here", operand)
        return symbol.block

    # Reading

    def read(self, operand: ast.Operand, type_: ScalarType, *, relaxed: bool = False) -> Words:
        """A source operand as a value of `type_`."""
        match operand:
            case ast.Integer(value=value):
                bits = type_.value(value)
                words: Words = (Imm(bits & WORD),)
                return (*words, Imm(bits >> 32 & WORD)) if type_.bits == 64 else words
            case ast.Name():
                return self._read_name(operand, type_, relaxed)
            case ast.SymbolOffset(name=name, offset=offset):
                low = self._read_name(name, type_, relaxed)[0]
                return self.fit((self.b.add(low, offset),), type_)
            case ast.Float():
                raise self.error("a floating-point constant is not supported", operand)
            case _:
                raise self.error(f"'{operand}' cannot be a source operand", operand)

    def word(self, position: int, type_: ScalarType, *, relaxed: bool = False) -> Value:
        """The operand at a position as one word (types of up to 32 bits)."""
        return self.read(self.operands[position], type_, relaxed=relaxed)[0]

    def _read_name(self, name: ast.Name, type_: ScalarType, relaxed: bool) -> Words:
        symbol = self.scope.find(operand_key(name))
        if symbol is None:
            value = self.kernel.special_register(operand_key(name))
            if value is None:
                key = operand_key(name)
                raise PtxNameError(f"'{key}' is not declared", span=name.span, found=key)
            return self.fit((value,), type_)
        match symbol:
            case MemoryVariable(address=address):
                return self.fit((address,), type_)
            case ParameterBlock() if symbol.data is not None:
                return self.fit((Imm(self.kernel.parameter_address(symbol)),), type_)
            case RegisterVariable():
                self._check_width(symbol, type_, name, relaxed)
                return self.fit(self.kernel.register_words(symbol), type_)
            case ast.Function():
                raise self.unsupported(
                    f"the address of function '{name.name}' is taken",
                    "function pointers are not lowered, since calls are expanded in place: "
                    "choose with if or switch, and call each function by its name",
                )
            case _:
                raise self.unsupported(
                    f"'{name.name}' has no value of its own",
                    "a register, a variable in memory or a number is needed here",
                )

    def _check_width(
        self, register: RegisterVariable, type_: ScalarType, operand: ast.Node, relaxed: bool
    ) -> None:
        predicate = register.type is PRED
        fits = register.type.bits == type_.bits or (relaxed and register.type.bits > type_.bits)
        if predicate != (type_ is PRED) or not fits:
            raise self.error(
                f"a .{register.type.name} register cannot be a .{type_.name} operand", operand
            )

    def fit(self, words: Words, type_: ScalarType) -> Words:
        """Words cut to a type's width and extended by its sign; one word extends to 64 bits."""
        low = words[0]
        if type_.bits == 64:
            return words if len(words) == 2 else (low, ZERO)
        if type_.bits == 32:
            return (low,)
        return (
            (self.sign_extend(low, type_.bits),)
            if type_.signed
            else (self.b.and_(low, type_.mask),)
        )

    def sign_extend(self, low: Value, bits: int) -> Value:
        """The low bits of a word extended by their sign."""
        if bits in (8, 16):
            return self.b.part(low, 0, bits // 8, signed=True)
        top = 1 << (bits - 1)
        field = self.b.and_(low, 2 * top - 1)
        return self.b.sub(self.b.xor(field, top), top)

    def condition(self, operand: ast.Operand) -> Condition:
        """A predicate operand."""
        match operand:
            case ast.Negated(name=name):
                return self.b.invert(self.condition(name))
            case ast.Integer(value=value):
                return value != 0
        symbol = self.symbol(operand)
        if not isinstance(symbol, RegisterVariable) or symbol.type is not PRED:
            raise self.error("a predicate is needed here", operand)
        return self.kernel.register_condition(symbol)

    def elements(self, operand: ast.Operand) -> tuple[ast.Operand, ...]:
        """The elements of `{a, b}` or of a vector register; a scalar is one element."""
        if isinstance(operand, ast.Vector):
            return operand.elements
        if isinstance(operand, ast.Name) and operand.component is None:
            symbol = self.scope.find(operand.name)
            if isinstance(symbol, VectorVariable):
                return tuple(ast.Name(operand.name, c, span=operand.span) for c in symbol.elements)
        return (operand,)

    def address(self, operand: ast.Operand) -> tuple[Value, int, str]:
        """Base, offset and (if the base is a variable) state space of `[base+offset]`."""
        if not isinstance(operand, ast.Address):
            raise self.error("an address in brackets is needed here", operand)
        base, offset = operand.base, operand.offset
        if isinstance(base, ast.Integer):
            return Imm((base.value + offset) & WORD), 0, ""
        symbol = self.symbol(base)
        if isinstance(symbol, MemoryVariable):
            return symbol.address, offset, symbol.space
        if isinstance(symbol, RegisterVariable) and symbol.type.bits in (32, 64):
            low = self.kernel.register_words(symbol)[0]
            return low, offset, ""
        raise self.error("an address register has 32 or 64 bits", operand)

    # Writing

    def write(self, operand: ast.Operand, type_: ScalarType, words: Words) -> None:
        """Sets a destination register; bits of `words` beyond the type do not matter."""
        if isinstance(operand, ast.Name) and operand.name == "_":
            return
        symbol = self._destination(operand)
        self._check_width(symbol, type_, operand, relaxed=True)
        fitted = self.fit(words[: 2 if type_.bits == 64 else 1], type_)
        if symbol.type.bits == 64 and len(fitted) == 1:
            sign = self.b.sar(fitted[0], 31) if type_.signed else ZERO
            fitted = (fitted[0], sign)
        if symbol.type.bits < 32 and type_.signed:
            fitted = (self.b.and_(words[0], symbol.type.mask),)
            if type_.bits < symbol.type.bits:
                extended = self.sign_extend(words[0], type_.bits)
                fitted = (self.b.and_(extended, symbol.type.mask),)
        self.kernel.set_words(symbol, fitted)

    def write_condition(self, operand: ast.Operand, condition: Condition) -> None:
        """Sets a destination predicate."""
        if isinstance(operand, ast.Name) and operand.name == "_":
            return
        symbol = self._destination(operand)
        self._check_width(symbol, PRED, operand, relaxed=False)
        self.kernel.set_condition(symbol, condition)

    def _destination(self, operand: ast.Operand) -> RegisterVariable:
        symbol = self.symbol(operand)
        if not isinstance(symbol, RegisterVariable):
            raise self.error("a register is needed here", operand)
        return symbol

    def carry(self) -> Reg:
        """The thread's carry flag, a word of 0 or 1."""
        return self.kernel.carry
