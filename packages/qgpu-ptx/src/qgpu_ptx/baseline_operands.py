"""What the instructions of a PTX function read and write, for the baseline's program.

Registers are numbered through a function, so that registers of one name in two nested blocks
differ. Instructions are in the order of the reference interpreter, which counts by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES

_WITHOUT_DESTINATION = frozenset(
    {"st", "red", "bra", "brx", "membar", "fence", "nanosleep", "prefetch", "prefetchu"}
    | {"ret", "exit", "trap", "call"}
)
_USES_CARRY = frozenset({"addc", "subc", "madc"})
_COMPARES = frozenset({"setp", "set"})


@dataclass(frozen=True)
class Register:
    """A register of a function. `.param` variables of calls count as registers of one word."""

    name: str
    bits: int = 32


CARRY = Register("carry")
"""The carry flag of `add.cc` and its like."""


@dataclass(frozen=True)
class Access:
    """One instruction with what it reads and writes.

    Attributes:
        node: the instruction.
        reads, writes: registers; a guard's predicate is among the reads.
        bases: those of the reads that are the base of a memory address.
        targets: indices of the instructions that it may branch to.
    """

    node: ast.Instruction
    reads: tuple[Register, ...]
    writes: tuple[Register, ...]
    bases: tuple[Register, ...] = ()
    targets: tuple[int, ...] = ()


class _Names:
    """Names of a block: registers, labels, lists of labels; others are in the block around it."""

    def __init__(self, parent: _Names | None = None) -> None:
        self.parent = parent
        self.registers: dict[str, tuple[Register, ...]] = {}
        self.labels: dict[str, tuple[int, ...]] = {}
        self.lists: dict[str, tuple[str, ...]] = {}

    def registers_of(self, name: str) -> tuple[Register, ...]:
        """The registers of a name, none for a variable or a special register."""
        if name in self.registers:
            return self.registers[name]
        return self.parent.registers_of(name) if self.parent else ()

    def targets_of(self, name: str) -> tuple[int, ...]:
        """The instructions that a label or a list of labels stands for."""
        if name in self.labels:
            return self.labels[name]
        if name in self.lists:
            return tuple(pc for label in self.lists[name] for pc in self.targets_of(label))
        return self.parent.targets_of(name) if self.parent else ()


class FunctionAccesses:
    """The instructions of one function in order, with what they read and write."""

    def __init__(self, function: ast.Function) -> None:
        self._flat: list[tuple[ast.Instruction, _Names]] = []
        self._count = 0
        names = _Names()
        for variable in (*function.returns, *function.parameters):
            if variable.space == "reg":
                self._declare(names, variable.name, variable.type, 1)
        if function.body is not None:
            self._flatten(function.body, names)
        self._passed: dict[str, set[int]] = {}
        for node, _ in self._flat:
            place = param_variable(node)
            if place is not None:
                self._passed.setdefault(place[0], set()).add(place[1])
        self._returns = tuple(variable.name for variable in function.returns)
        self.accesses = [self._access(node, scope) for node, scope in self._flat]

    def _declare(self, names: _Names, name: str, type_: str, vector: int) -> None:
        bits = SCALAR_TYPES[type_].bits
        elements = [name] if vector == 1 else [f"{name}.{letter}" for letter in "xyzw"[:vector]]
        for element in elements:
            names.registers[element] = (Register(f"{self._count}:{element}", bits),)
            self._count += 1
        names.registers[name] = tuple(r for e in elements for r in names.registers[e])

    def _flatten(self, block: ast.Block, names: _Names) -> None:
        for statement in block.statements:
            match statement:
                case ast.Instruction():
                    self._flat.append((statement, names))
                case ast.Label(name=name):
                    names.labels[name] = (len(self._flat),)
                case ast.BranchTargets(name=name, targets=targets):
                    names.lists[name] = targets
                case ast.Registers(type=type_, names=declared, vector=vector):
                    for group in declared:
                        for name in group.names():
                            self._declare(names, name, type_, vector)
                case ast.Block():
                    self._flatten(statement, _Names(names))
                case _:
                    pass

    def _access(self, node: ast.Instruction, names: _Names) -> Access:
        opcode, operands = node.opcode, node.operands
        if opcode == "call":
            access = self._call(node, names)
        elif opcode == "ret":
            returned = [r for name in self._returns for r in self._passed_as(name, names)]
            access = Access(node, tuple(returned), ())
        else:
            with_result = opcode not in _WITHOUT_DESTINATION and operands
            if opcode in ("bar", "barrier") and "red" not in node.modifiers:
                with_result = False
            results, sources = operands[: bool(with_result)], operands[bool(with_result) :]
            access = Access(
                node,
                self._registers(sources, names),
                self._registers(results, names),
                self._registers([o for o in operands if isinstance(o, ast.Address)], names),
                self._targets(node, names),
            )
        place = param_variable(node)
        if place is not None and not access.bases:
            passed = (_passing(*place),)
            reads, writes = access.reads, access.writes
            access = (
                replace(access, reads=(*reads, *passed))
                if opcode == "ld"
                else replace(access, writes=(*writes, *passed))
            )
        if opcode in _USES_CARRY:
            access = replace(access, reads=(*access.reads, CARRY))
        if "cc" in node.modifiers:
            access = replace(access, writes=(*access.writes, CARRY))
        if node.guard is not None:
            guard = names.registers_of(node.guard.register)
            # Where the guard fails the old values stay, so they are read.
            access = replace(access, reads=(*access.reads, *guard, *access.writes))
        return access

    def _call(self, node: ast.Instruction, names: _Names) -> Access:
        """A call reads its arguments and writes what is returned."""
        operands = list(node.operands)
        returns: tuple[ast.Operand, ...] = ()
        if operands and isinstance(operands[0], ast.ArgumentList):
            returns = operands.pop(0).elements  # type: ignore[union-attr]
        reads = list(self._registers(operands[:1], names))
        for operand in operands[1:2]:
            assert isinstance(operand, ast.ArgumentList)
            reads += self._arguments(operand.elements, names)
        return Access(node, tuple(reads), tuple(self._arguments(returns, names)))

    def _arguments(self, operands: tuple[ast.Operand, ...], names: _Names) -> list[Register]:
        return [
            register
            for operand in operands
            if isinstance(operand, ast.Name)
            for register in self._passed_as(operand.name, names)
        ]

    def _passed_as(self, name: str, names: _Names) -> tuple[Register, ...]:
        registers = names.registers_of(name)
        offsets = sorted(self._passed.get(name, ()))
        return registers or tuple(_passing(name, offset) for offset in offsets)

    @staticmethod
    def _targets(node: ast.Instruction, names: _Names) -> tuple[int, ...]:
        if node.opcode not in ("bra", "brx"):
            return ()
        label = node.operands[-1]
        return names.targets_of(label.name) if isinstance(label, ast.Name) else ()

    def _registers(
        self, operands: list[ast.Operand] | tuple[ast.Operand, ...], names: _Names
    ) -> tuple[Register, ...]:
        found: list[Register] = []
        for operand in operands:
            match operand:
                case ast.Name(name=name, component=component):
                    found += names.registers_of(f"{name}.{component}" if component else name)
                case ast.Negated(name=inner):
                    found += self._registers((inner,), names)
                case ast.Address(base=base):
                    found += self._registers((base,), names)
                case ast.Vector(elements=elements):
                    found += self._registers(elements, names)
                case ast.Pair(first=first, second=second):
                    found += self._registers((first, second), names)
                case _:
                    pass
        return tuple(found)


def param_variable(node: ast.Instruction) -> tuple[str, int] | None:
    """The `.param` variable and offset that an `ld.param` or `st.param` names, else None."""
    if node.opcode not in ("ld", "st") or not any(
        m.split("::")[0] == "param" for m in node.modifiers
    ):
        return None
    for operand in node.operands:
        if isinstance(operand, ast.Address) and isinstance(operand.base, ast.Name):
            return operand.base.name, operand.offset
    return None


def _passing(name: str, offset: int) -> Register:
    return Register(f"param {name}+{offset}")


def address_registers(accesses: list[Access]) -> set[Register]:
    """The 64-bit registers that addresses are made of.

    These are the bases of loads, stores and atomics, the sources of an instruction whose result is
    one of them, and both sides of a comparison of which one is.
    """
    found = {r for access in accesses for r in access.bases}
    size = -1
    while size != len(found):
        size = len(found)
        for access in accesses:
            opcode = access.node.opcode
            if opcode in ("ld", "ldu", "atom"):
                continue
            linked = access.reads if opcode in _COMPARES else access.writes
            if found.intersection(linked):
                found.update(r for r in access.reads if r.bits == 64)
    return {r for r in found if r.bits == 64}
