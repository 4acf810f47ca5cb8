"""PTX AST to IR: scopes, registers, parameters, control flow; calls are expanded in place."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu_isa.machine_config import MachineConfig

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import LaunchError, PtxNameError, UnsupportedDeclarationError
from qgpu_ptx.expansions.known_divisions import KnownDivisions
from qgpu_ptx.instruction_context import InstructionContext, Words
from qgpu_ptx.ir import Function, Imm, Origin, PredUse, Reg, Value
from qgpu_ptx.ir_builder import Condition, IrBuilder
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.lowering_errors import LoweringError
from qgpu_ptx.lowering_symbols import (
    CodeLabel,
    NameScope,
    ParameterBlock,
    RegisterVariable,
    TargetList,
    VectorVariable,
    count_assignments,
)
from qgpu_ptx.ptx_interpreter import find_instruction
from qgpu_ptx.ptx_interpreter.symbols import layout, scalar_type
from qgpu_ptx.thread_values import special_register
from qgpu_ptx.variable_layout import VariableLayout

PARAMETER_WINDOW = 0xF000_0000
"""Addresses of kernel parameters, which are no memory: only known ones can be loaded from."""


@dataclass
class _Frame:
    """A function being expanded: where its `ret` goes (None: the thread exits)."""

    function: ast.Function
    scope: NameScope
    return_label: str | None
    labels: dict[str, str] = field(default_factory=dict)


class KernelLowering:
    """Lowers one kernel for one launch shape and known arguments.

    `combines` says that atomics may be done for the lanes of a pass together.
    """

    def __init__(
        self,
        module: ast.Module,
        entry: ast.Function,
        shape: LaunchShape,
        arguments: tuple[int | bytes, ...],
        variables: VariableLayout,
        config: MachineConfig,
        *,
        combines: bool = True,
    ) -> None:
        self.module = module
        self.entry = entry
        self.shape = shape
        self.config = config
        self.variables = variables
        self.combines = combines
        self.divisions = KnownDivisions()
        self.builder = IrBuilder(entry.name)
        self.carry: Reg = self.builder.variable()
        self._arguments = arguments
        self._parameters: list[ParameterBlock] = []
        self._frames: list[_Frame] = []
        self._globals = NameScope()
        self._exchanges = 0

    def lower(self) -> Function:
        """The kernel's IR. Raises QgpuPtxError."""
        for function in self.module.declarations:
            if isinstance(function, ast.Function):
                known = self._globals.names.get(function.name)
                if not isinstance(known, ast.Function) or function.body:
                    self._globals.names[function.name] = function
        for variable in self.module.variables:
            self._globals.names[variable.name] = self.variables.module_variable(variable)
        scope = NameScope(self._globals)
        if len(self._arguments) != len(self.entry.parameters):
            raise LaunchError(
                f"kernel {self.entry.name} takes {len(self.entry.parameters)} arguments, "
                f"{len(self._arguments)} given",
                span=self.entry.span,
            )
        for parameter, argument in zip(self.entry.parameters, self._arguments, strict=True):
            size = layout(parameter, 0)[1]
            data = (
                argument
                if isinstance(argument, bytes)
                else (argument % (1 << 8 * size)).to_bytes(size, "little")
            )
            if len(data) != size:
                raise LaunchError(
                    f"{parameter.name} has {size} bytes, {len(data)} given", span=parameter.span
                )
            block = ParameterBlock(size, data)
            self._parameters.append(block)
            scope.names[parameter.name] = block
        self.expand(self.entry, scope, None)
        return self.builder.finish()

    # Functions and statements

    def expand(self, function: ast.Function, scope: NameScope, return_label: str | None) -> None:
        """Lowers a function's body here; its parameters are in `scope`."""
        assert function.body is not None
        if any(frame.function is function for frame in self._frames):
            raise LoweringError(
                f"function '{function.name}' calls itself; calls are expanded in place",
                span=function.span,
                hint="recursion is not supported",
            )
        self._frames.append(_Frame(function, scope, return_label))
        counts = count_assignments(function.body)
        self._declare(function.body, scope, counts)
        self._statements(function.body, scope)
        self.ret()
        self._frames.pop()

    def ret(self) -> None:
        """Returns from the function being expanded."""
        label = self._frames[-1].return_label
        if label is None:
            self.builder.exit()
        else:
            self.builder.jump(label)

    def _declare(self, block: ast.Block, scope: NameScope, counts: dict[str, int]) -> None:
        for statement in block.statements:
            match statement:
                case ast.Label(name=name):
                    scope.names[name] = CodeLabel(self.builder.label(name.lstrip("$")))
                case ast.Registers():
                    self._declare_registers(statement, scope, counts)
                case ast.Variable(space="param"):
                    scope.names[statement.name] = ParameterBlock(layout(statement, 0)[1])
                case ast.Variable():
                    scope.names[statement.name] = self.variables.function_variable(statement)
                case ast.BranchTargets(name=name, targets=targets):
                    scope.names[name] = TargetList(targets)
                case _:
                    pass

    @staticmethod
    def _declare_registers(
        statement: ast.Registers, scope: NameScope, counts: dict[str, int]
    ) -> None:
        type_ = scalar_type(statement.type, statement.span)
        for declared in statement.names:
            for name in declared.names():
                if statement.vector == 1:
                    scope.names[name] = RegisterVariable(type_, counts.get(name, 0))
                    continue
                letters = "xyzw"[: statement.vector]
                scope.names[name] = VectorVariable(tuple(letters))
                for letter in letters:
                    # A whole vector may be set as one operand too.
                    sets = counts.get(f"{name}.{letter}", 0) + counts.get(name, 0)
                    scope.names[f"{name}.{letter}"] = RegisterVariable(type_, sets)

    def _statements(self, block: ast.Block, scope: NameScope) -> None:
        counts = count_assignments(block)
        for statement in block.statements:
            match statement:
                case ast.Instruction():
                    self._instruction(statement, scope)
                case ast.Label(name=name):
                    label = scope.find(name)
                    assert isinstance(label, CodeLabel)
                    self.builder.place(label.block)
                case ast.Block():
                    inner = NameScope(scope)
                    self._declare(statement, inner, counts)
                    self._statements(statement, inner)
                case _:
                    pass

    def _instruction(self, node: ast.Instruction, scope: NameScope) -> None:
        from qgpu_ptx.expansions import EXPANSIONS

        _, modifiers = find_instruction(node)
        context = InstructionContext(self, scope, node)
        expansion = EXPANSIONS.get(node.opcode)
        if expansion is None:
            raise context.unsupported("this instruction is not lowered to the machine")
        self.builder.origin = Origin(
            node.span.filename if node.span else "",
            node.span.line if node.span else 0,
            str(node.cuda_location) if node.cuda_location else "",
        )
        if node.guard is None:
            expansion(context, modifiers)
            return
        name = ast.Name(node.guard.register, span=node.guard.span)
        condition = context.condition(name)
        if node.guard.negated:
            condition = self.builder.invert(condition)
        if node.opcode == "bra":
            after = self.builder.label("next")
            self.builder.branch(condition, context.label(node.operands[0]), after)
        else:
            after = self.builder.skip_unless(condition)
            expansion(context, modifiers)
        self.builder.place(after)

    # Registers

    def register_words(self, symbol: RegisterVariable) -> Words:
        """The words of a register."""
        if symbol.known is not None:
            return symbol.known
        if not symbol.words:
            count = 2 if symbol.type.bits == 64 else 1
            symbol.words = tuple(self.builder.variable() for _ in range(count))
        return symbol.words

    def register_condition(self, symbol: RegisterVariable) -> Condition:
        """The truth of a predicate register."""
        if symbol.known_condition is not None:
            return symbol.known_condition
        if symbol.predicate is None:
            symbol.predicate = self.builder.predicate_variable()
        return PredUse(symbol.predicate)

    def set_words(self, symbol: RegisterVariable, words: Words) -> None:
        """Sets a register."""
        if symbol.assignments == 1 and not symbol.words:
            symbol.known = tuple(self.builder.current(word) for word in words)
            return
        for register, value in zip(self.register_words(symbol), words, strict=True):
            assert isinstance(register, Reg)
            self.builder.assign(register, value)

    def set_condition(self, symbol: RegisterVariable, condition: Condition) -> None:
        """Sets a predicate register."""
        if symbol.assignments == 1 and symbol.predicate is None:
            symbol.known_condition = self.builder.current_condition(condition)
            return
        self.register_condition(symbol)
        assert symbol.predicate is not None
        self.builder.assign_predicate(symbol.predicate, condition)

    def next_exchange(self) -> int:
        """Which of two scratch areas the next shuffle uses."""
        self._exchanges += 1
        return self._exchanges % 2

    # Values from outside the function

    def special_register(self, name: str) -> Value | None:
        """A special register's value, None if there is none of that name."""
        return special_register(self, name)

    def parameter_address(self, block: ParameterBlock) -> int:
        """A number that stands for a kernel parameter's address."""
        for index, known in enumerate(self._parameters):
            if known is block:
                return PARAMETER_WINDOW + (index << 16)
        raise AssertionError("not a kernel parameter")

    def parameter_at(self, address: Value) -> tuple[ParameterBlock, int] | None:
        """The kernel parameter that an address lies in, and the offset there."""
        if not isinstance(address, Imm) or address.value < PARAMETER_WINDOW:
            return None
        index, offset = divmod(address.value - PARAMETER_WINDOW, 1 << 16)
        return (self._parameters[index], offset) if index < len(self._parameters) else None

    def function(self, context: InstructionContext, operand: ast.Operand) -> ast.Function:
        """The function that a call names. Raises LoweringError, UnsupportedDeclarationError."""
        symbol = context.scope.find(operand.name) if isinstance(operand, ast.Name) else None
        if not isinstance(symbol, ast.Function):
            if symbol is None and isinstance(operand, ast.Name):
                raise PtxNameError(f"'{operand.name}' is not declared", span=operand.span)
            raise context.unsupported("only calls of a function by its name are supported")
        if symbol.body is None:
            raise UnsupportedDeclarationError(
                f"function '{symbol.name}' has no body in this module",
                span=context.node.span,
                hint="library and system functions such as printf or malloc are not supported",
            )
        return symbol

    @property
    def globals(self) -> NameScope:
        """The scope of the module."""
        return self._globals
