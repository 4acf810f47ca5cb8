"""A module made ready to run: names resolved, variables placed, instructions decoded."""

from __future__ import annotations

from math import prod

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import PtxNameError, UnsupportedDeclarationError
from qgpu_ptx.ptx_interpreter.instruction_table import find_instruction
from qgpu_ptx.ptx_interpreter.machine import Code, DecodedInstruction
from qgpu_ptx.ptx_interpreter.memory import DeviceMemory, to_generic
from qgpu_ptx.ptx_interpreter.operands import OperandDecoder
from qgpu_ptx.ptx_interpreter.scalar_types import PRED, ScalarType
from qgpu_ptx.ptx_interpreter.symbols import (
    FunctionSymbol,
    LabelSymbol,
    MemorySymbol,
    PrototypeSymbol,
    RegisterSymbol,
    Scope,
    TargetsSymbol,
    VectorRegisterSymbol,
    layout,
    scalar_type,
)

# Function addresses are handles in a range where no memory lies.
FUNCTION_HANDLES = 0x0800_0000


class Program:
    """Functions are decoded when first needed, so an unused one may hold anything."""

    def __init__(self, module: ast.Module, memory: DeviceMemory) -> None:
        self.module = module
        self.memory = memory
        self.shared_bytes = 0
        self._dynamic_shared: list[tuple[MemorySymbol, int]] = []
        self._globals = Scope()
        self._codes: dict[str, Code] = {}
        self._signatures: dict[str, tuple[list[MemorySymbol | RegisterSymbol], ...]] = {}
        self._pending: list[tuple[Code, ast.Function, Scope]] = []
        self._functions: dict[str, ast.Function] = {}
        for declaration in module.declarations:
            if isinstance(declaration, ast.Function):
                self._declare_function(declaration)
        self._declare_variables()

    def _declare_function(self, function: ast.Function) -> None:
        known = self._functions.get(function.name)
        if known is not None and known.body and function.body:
            raise PtxNameError(f"function '{function.name}' is defined twice", span=function.span)
        if known is None or function.body:
            self._functions[function.name] = function
            self._globals.names[function.name] = FunctionSymbol(function)

    def _declare_variables(self) -> None:
        placed = []
        for variable in self.module.variables:
            if variable.space in ("global", "const"):
                _, size = layout(variable, 0)
                if not size and isinstance(variable.initializer, ast.InitializerList):
                    size = (
                        len(variable.initializer.elements)
                        * layout(ast.Variable(variable.space, variable.type, variable.name), 0)[1]
                    )
                if "extern" in variable.linkage:
                    raise UnsupportedDeclarationError(
                        f"'{variable.name}' is defined in another module", span=variable.span
                    )
                data = bytearray(size)
                allocation = self.memory.allocate(variable.name, data, variable.space)
                symbol = MemorySymbol(variable.name, variable.space, allocation.start, size)
                self._globals.declare(variable.name, symbol, variable.span)
                placed.append((variable, data))
            else:
                self._place(variable, self._globals, None)
        for variable, data in placed:
            if variable.initializer is not None:
                type_ = scalar_type(variable.type, variable.span)
                self._initialise(variable.initializer, variable, type_, data, 0)

    def _initialise(
        self,
        value: ast.Initializer,
        variable: ast.Variable,
        type_: ScalarType,
        data: bytearray,
        offset: int,
        depth: int = 0,
    ) -> None:
        if isinstance(value, ast.InitializerList):
            # An element at this depth covers all that the inner dimensions (and then the vector's
            # own elements) multiply to.
            inner = (*variable.dimensions, variable.vector)[depth + 1 :]
            step = type_.bytes * prod(d or 1 for d in inner)
            for number, element in enumerate(value.elements):
                place = offset + number * step
                self._initialise(element, variable, type_, data, place, depth + 1)
            return
        match value:
            case ast.Integer(value=number):
                bits = number
            case ast.SymbolValue(name=name, offset=extra):
                symbol = self._globals.find(name)
                if not isinstance(symbol, MemorySymbol):
                    raise PtxNameError(f"'{name}' is not a variable", span=value.span, found=name)
                bits = to_generic(symbol.space, symbol.address) + extra
            case _:
                raise UnsupportedDeclarationError(
                    "floating-point initialisers are not supported", span=value.span
                )
        if offset + type_.bytes > len(data):
            raise PtxNameError(f"too many initialisers for '{variable.name}'", span=value.span)
        encoded = (bits & type_.mask).to_bytes(type_.bytes, "little")
        data[offset : offset + type_.bytes] = encoded

    def _place(
        self, variable: ast.Variable, scope: Scope, code: Code | None
    ) -> MemorySymbol | RegisterSymbol:
        """Places a shared, local or param variable, or a register parameter."""
        type_ = scalar_type(variable.type, variable.span)
        symbol: MemorySymbol | RegisterSymbol
        if variable.space == "reg" and code is not None:
            symbol = RegisterSymbol(code.registers, type_)
            code.registers += 1
        elif variable.space == "shared":
            if "extern" in variable.linkage or None in variable.dimensions:
                symbol = MemorySymbol(variable.name, "shared", 0, 0)
                self._dynamic_shared.append((symbol, variable.align or 16))
            else:
                start, size = layout(variable, self.shared_bytes)
                self.shared_bytes = start + size
                symbol = MemorySymbol(variable.name, "shared", start, size)
        elif variable.space == "local" and code is not None:
            start, size = layout(variable, code.local_bytes)
            code.local_bytes = start + size
            symbol = MemorySymbol(variable.name, "local", start, size)
        elif variable.space == "param" and code is not None:
            start, size = layout(variable, code.param_bytes)
            code.param_bytes = start + size
            symbol = MemorySymbol(variable.name, "param", start, size)
        else:
            raise UnsupportedDeclarationError(
                f".{variable.space} variable '{variable.name}' is not supported here",
                span=variable.span,
                expected=[".global", ".const", ".shared", ".local and .param in a function"],
            )
        scope.declare(variable.name, symbol, variable.span)
        return symbol

    def function_address(self, function: ast.Function) -> int:
        """A handle for `mov` of a function's name."""
        return FUNCTION_HANDLES + list(self._functions).index(function.name)

    def function_at(self, address: int) -> ast.Function | None:
        """The function of a handle."""
        names = list(self._functions)
        index = address - FUNCTION_HANDLES
        return self._functions[names[index]] if 0 <= index < len(names) else None

    def decode_all_addressed(self) -> None:
        """Makes every function with a body callable, for calls through a register."""
        for name, function in self._functions.items():
            if function.kind == "func" and function.body:
                self.code(name)

    def signature(
        self, name: str
    ) -> tuple[list[MemorySymbol | RegisterSymbol], list[MemorySymbol | RegisterSymbol]]:
        """Where a function's returns and parameters lie in its frame."""
        self.code(name)
        returns, parameters = self._signatures[name]
        return returns, parameters

    def code(self, name: str) -> Code:
        """A function's code; its instructions are filled in by `link`."""
        if name in self._codes:
            return self._codes[name]
        function = self._functions[name]
        code = Code(len(self._codes), name)
        self._codes[name] = code
        scope = Scope(self._globals)
        returns = [self._place(v, scope, code) for v in function.returns]
        parameters = [self._place(v, scope, code) for v in function.parameters]
        self._signatures[name] = (returns, parameters)
        self._pending.append((code, function, scope))
        return code

    def link(self, entry: str, dynamic_shared_bytes: int) -> Code:
        """Decodes an entry and all it calls, and places dynamic shared memory."""
        code = self.code(entry)
        while self._pending:
            self._decode(*self._pending.pop())
        end = self.shared_bytes
        for symbol, align in self._dynamic_shared:
            # All dynamic arrays start at one address (PTX ISA, .extern .shared).
            symbol.address = -(-end // max(align, 16)) * max(align, 16)
        if self._dynamic_shared:
            end = max(symbol.address for symbol, _ in self._dynamic_shared)
        self.shared_bytes = end + dynamic_shared_bytes
        return code

    def _decode(self, code: Code, function: ast.Function, scope: Scope) -> None:
        assert function.body is not None
        flat: list[tuple[ast.Instruction, Scope]] = []
        self._flatten(function.body, scope, code, flat)
        end = function.body.span
        closing = end.source.span(end.end - 1, end.end) if end else None
        # Control may run off the end of a function, which returns.
        flat.append((ast.Instruction("ret", span=closing), scope))
        for index, (node, inner) in enumerate(flat):
            spec, modifiers = find_instruction(node)
            decoder = OperandDecoder(self, inner, node, index)
            guard = None
            if node.guard:
                name = ast.Name(node.guard.register, span=node.guard.span)
                register = decoder.register(name)
                if register.type is not PRED:
                    raise decoder.error("a guard is a predicate register", node.guard)
                guard = (register.index, 0 if node.guard.negated else 1)
            execute = spec.decode(decoder, modifiers)
            polls = node.opcode in ("atom", "nanosleep") or (
                node.opcode == "ld" and modifiers.get("order", "weak") != "weak"
            )
            decoded = DecodedInstruction(node, execute, spec.control, guard, polls)
            code.instructions.append(decoded)

    def _flatten(
        self,
        block: ast.Block,
        scope: Scope,
        code: Code,
        flat: list[tuple[ast.Instruction, Scope]],
    ) -> None:
        for statement in block.statements:
            match statement:
                case ast.Instruction():
                    flat.append((statement, scope))
                case ast.Label(name=name):
                    scope.declare(name, LabelSymbol(len(flat)), statement.span)
                case ast.Registers():
                    self._declare_registers(statement, scope, code)
                case ast.Variable():
                    self._place(statement, scope, code)
                case ast.BranchTargets(name=name, targets=targets):
                    scope.declare(name, TargetsSymbol(targets), statement.span)
                case ast.CallPrototype(name=name):
                    scope.declare(name, PrototypeSymbol(), statement.span)
                case ast.Block():
                    self._flatten(statement, Scope(scope), code, flat)
                case _:
                    pass  # .loc, .file, .pragma and .section do not execute

    @staticmethod
    def _declare_registers(statement: ast.Registers, scope: Scope, code: Code) -> None:
        type_ = scalar_type(statement.type, statement.span)
        for declared in statement.names:
            for name in declared.names():
                names = [name]
                if statement.vector > 1:
                    letters = "xyzw"[: statement.vector]
                    scope.declare(name, VectorRegisterSymbol(tuple(letters)), declared.span)
                    names = [f"{name}.{letter}" for letter in letters]
                for element in names:
                    scope.declare(element, RegisterSymbol(code.registers, type_), declared.span)
                    code.registers += 1
