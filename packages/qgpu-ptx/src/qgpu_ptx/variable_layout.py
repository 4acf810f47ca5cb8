"""Places module, shared and local variables in the machine's memory."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from qgpu_isa.machine_config import MachineConfig

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import PtxNameError, UnsupportedDeclarationError
from qgpu_ptx.ir import Imm, Value
from qgpu_ptx.lowering_errors import machine_limit
from qgpu_ptx.lowering_symbols import MemoryVariable
from qgpu_ptx.memory_layout import WORD_BYTES, align_up, bytes_to_words
from qgpu_ptx.ptx_interpreter.scalar_types import ScalarType
from qgpu_ptx.ptx_interpreter.symbols import layout, scalar_type

LocalAddress = Callable[[int], Value]


class VariableLayout:
    """Addresses of variables; grows as functions are lowered.

    Global words from `end` on are free. Shared memory begins with the module's static arrays;
    dynamic arrays follow, then scratch words that the compiler itself needs.
    """

    def __init__(self, module: ast.Module, config: MachineConfig, end: int, dynamic: int) -> None:
        self.config = config
        self.end = align_up(end, 16)
        self.memory: dict[int, int] = {}
        self.local_bytes = 0
        self.local_align = WORD_BYTES
        self._dynamic = dynamic
        self._shared_end = 0
        self._scratch: dict[str, int] = {}
        self._scratch_start: dict[str, int] = {}
        self._constants: dict[str, int] = {}
        self._module: dict[str, MemoryVariable] = {}
        for variable in module.variables:
            self._place(variable)
        for variable in module.variables:
            if variable.initializer is not None:
                self._initialise(variable)
        # Shared arrays of functions are known before dynamic ones are placed behind them.
        self._functions = {id(v): self._static_shared(v) for v in _function_variables(module)}

    def _place(self, variable: ast.Variable) -> None:
        if "extern" in variable.linkage and variable.space != "shared":
            raise UnsupportedDeclarationError(
                f"'{variable.name}' is defined in another module", span=variable.span
            )
        if variable.space == "shared":
            self._module[variable.name] = self._static_shared(variable)
            return
        if variable.space not in ("global", "const"):
            raise UnsupportedDeclarationError(
                f".{variable.space} variable '{variable.name}' is not supported here",
                span=variable.span, expected=[".global", ".const", ".shared"],
            )  # fmt: skip
        size = layout(variable, 0)[1] or self._initialiser_bytes(variable)
        address = align_up(self.end, max(WORD_BYTES, variable.align or 16))
        self.end = align_up(address + size, WORD_BYTES)
        self._module[variable.name] = MemoryVariable(variable.space, Imm(address), size)
        # Said for each word, since a machine that ran other launches before holds theirs.
        last = min(self.end // WORD_BYTES, self.config.global_words)
        self.memory |= dict.fromkeys(range(address // WORD_BYTES, last), 0)

    @staticmethod
    def _initialiser_bytes(variable: ast.Variable) -> int:
        if not isinstance(variable.initializer, ast.InitializerList):
            return 0
        unit = scalar_type(variable.type, variable.span).bytes
        return unit * variable.vector * len(variable.initializer.elements)

    def _static_shared(self, variable: ast.Variable) -> MemoryVariable:
        if "extern" in variable.linkage or None in variable.dimensions:
            return MemoryVariable("dynamic", Imm(0), 0)
        start, size = layout(variable, self._shared_end)
        start = align_up(start, WORD_BYTES)
        self._shared_end = start + size
        return MemoryVariable("shared", Imm(self.config.shared_base + start), size)

    def _initialise(self, variable: ast.Variable) -> None:
        place = self._module[variable.name]
        assert variable.initializer is not None
        assert isinstance(place.address, Imm)
        data = bytearray(place.size)
        type_ = scalar_type(variable.type, variable.span)
        self._fill(variable.initializer, variable, type_, data, 0, 0)
        self.memory |= bytes_to_words(bytes(data), place.address.value)

    def _fill(
        self, value: ast.Initializer, variable: ast.Variable, type_: ScalarType, data: bytearray,
        offset: int, depth: int,
    ) -> None:  # fmt: skip
        match value:
            case ast.InitializerList(elements=elements):
                inner = (*variable.dimensions, variable.vector)[depth + 1 :]
                step = type_.bytes * prod(d or 1 for d in inner)
                for number, element in enumerate(elements):
                    place = offset + number * step
                    self._fill(element, variable, type_, data, place, depth + 1)
                return
            case ast.Integer(value=bits):
                pass
            case ast.SymbolValue(name=name, offset=extra) if name in self._module:
                base = self._module[name].address
                assert isinstance(base, Imm)
                bits = base.value + extra
            case ast.SymbolValue(name=name):
                raise PtxNameError(f"'{name}' is not a variable", span=value.span, found=name)
            case _:
                raise UnsupportedDeclarationError(
                    "floating-point initialisers are not supported", span=value.span
                )
        if offset + type_.bytes > len(data):
            raise PtxNameError(f"too many initialisers for '{variable.name}'", span=value.span)
        data[offset : offset + type_.bytes] = (bits & type_.mask).to_bytes(type_.bytes, "little")

    # What functions see

    def _dynamic_start(self) -> int:
        return align_up(self._shared_end, 16)

    def _resolve(self, variable: MemoryVariable) -> MemoryVariable:
        if variable.space != "dynamic":
            return variable
        # All dynamic arrays start at one address (PTX ISA, .extern .shared).
        address = Imm(self.config.shared_base + self._dynamic_start())
        return MemoryVariable("shared", address, self._dynamic)

    def module_variable(self, variable: ast.Variable) -> MemoryVariable:
        """A variable of module scope."""
        return self._resolve(self._module[variable.name])

    def function_variable(self, variable: ast.Variable) -> MemoryVariable:
        """A variable declared in a function; each expansion has its own local ones."""
        if variable.space == "shared":
            return self._resolve(self._functions[id(variable)])
        if variable.space != "local":
            raise UnsupportedDeclarationError(
                f".{variable.space} variable '{variable.name}' is not supported here",
                span=variable.span, expected=[".shared", ".local", ".param"],
            )  # fmt: skip
        start, size = layout(variable, self.local_bytes)
        start = align_up(start, WORD_BYTES)
        unit = scalar_type(variable.type, variable.span).bytes * variable.vector
        self.local_align = max(self.local_align, variable.align or unit)
        self.local_bytes = start + size
        return MemoryVariable("local", self.local_address(start), size)

    def use_local_addresses(self, local_address: LocalAddress) -> None:
        """Sets how the address of a byte of local memory is computed."""
        self._local_address = local_address

    def local_stride(self) -> int:
        """Bytes from one thread's local memory to the next thread's.

        Variables keep their alignment, which compilers rely on; the number of aligned units is
        odd, which spreads the lanes of a pass over as many banks as the alignment allows.
        """
        units = -(-self.local_bytes // self.local_align)
        return (units | 1) * self.local_align if units else 0

    def local_address(self, offset: int) -> Value:
        """The address of a byte of the thread's local memory."""
        return self._local_address(offset)

    # What the compiler adds

    def constants(self, name: str, words: tuple[int, ...]) -> int:
        """The byte address of a table of constants in global memory."""
        if name not in self._constants:
            first = self.end // WORD_BYTES
            self.memory |= dict(enumerate(words, first))
            self._constants[name] = self.end
            self.end += WORD_BYTES * len(words)
        return self._constants[name]

    # Sizes

    def shared_bytes(self, dynamic: int) -> int:
        """Bytes of shared memory that the kernel itself uses."""
        return self._dynamic_start() + dynamic if dynamic else self._shared_end

    def scratch(self, name: str, words: int) -> int:
        """The byte address of an area of shared words for the compiler's own use."""
        lanes = self.config.lanes
        if name not in self._scratch:
            start = align_up(self.shared_bytes(self._dynamic), WORD_BYTES * lanes)
            used = sum(self._scratch.values())
            self._scratch_start[name] = self.config.shared_base + start + WORD_BYTES * used
            self._scratch[name] = align_up(words, lanes)
        return self._scratch_start[name]

    def used_shared_words(self) -> int:
        """Words of shared memory used, scratch included. Raises MachineLimitError."""
        end = self.shared_bytes(self._dynamic)
        if self._scratch:
            end = align_up(end, WORD_BYTES * self.config.lanes)
        words = -(-end // WORD_BYTES) + sum(self._scratch.values())
        if words > self.config.shared_words:
            raise machine_limit(
                self.config,
                "shared_words",
                f"the kernel needs {words} shared words; machine '{self.config.name}' has "
                f"{self.config.shared_words}",
            )
        return words


def _function_variables(module: ast.Module) -> list[ast.Variable]:
    found: list[ast.Variable] = []

    def walk(block: ast.Block) -> None:
        for statement in block.statements:
            if isinstance(statement, ast.Variable) and statement.space == "shared":
                found.append(statement)
            elif isinstance(statement, ast.Block):
                walk(statement)

    for function in module.functions:
        if function.body is not None:
            walk(function.body)
    return found
