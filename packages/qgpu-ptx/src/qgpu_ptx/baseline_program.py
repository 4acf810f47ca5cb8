"""The baseline of a launch: its tokens under the naive lowering of `qgpu_isa.baseline`.

**Instructions.** One PTX instruction is one instruction, in program order, whatever it would take
on the machine: a division, a shuffle and a multiply-add count one each.

**Constants.** What any compiler folds into the program's image costs nothing: an unguarded
`ld.param` of a kernel's (known) argument, and a `mov` of an immediate, of a special register or of
a variable's address, if its registers are written nowhere else. They are constants, so they are no
live-outs. Copies of constants and arithmetic on them are not folded. `cvta` of a constant is a
constant; of another register that, like its result, is written once, it is that register.

**Registers.** Predicates and the carry flag are registers. A 64-bit register counts once if an
address is made of it (see `address_registers`), else as two.

**Calls.** A function that is called has blocks of its own. A call is a branch that reads its
arguments and writes what is returned; `ld.param` and `st.param` of a call are moves.

**Words stored.** Every store to memory, local memory included, counts the words that it touches;
an atomic counts one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from qgpu_isa.baseline import (
    BaselineBlock,
    BaselineOp,
    GroupRun,
    OpKind,
    baseline_tokens,
    group_runs,
)

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.baseline_operands import (
    Access,
    FunctionAccesses,
    Register,
    address_registers,
    param_variable,
)
from qgpu_ptx.launch_spec import LaunchSpec
from qgpu_ptx.ptx_interpreter import DEFAULT_MAX_STEPS, SPECIAL_REGISTERS, find_entry, run_ptx
from qgpu_ptx.ptx_interpreter.machine import Code, Lane
from qgpu_ptx.ptx_interpreter.scalar_types import SCALAR_TYPES
from qgpu_ptx.run_launch_spec import check_spec_fits

_KINDS = {
    "ld": OpKind.LOAD, "ldu": OpKind.LOAD, "st": OpKind.STORE, "atom": OpKind.ATOMIC,
    "red": OpKind.ATOMIC, "bar": OpKind.BARRIER, "barrier": OpKind.BARRIER, "bra": OpKind.BRANCH,
    "brx": OpKind.BRANCH, "call": OpKind.BRANCH, "ret": OpKind.BRANCH, "exit": OpKind.BRANCH,
    "trap": OpKind.BRANCH,
}  # fmt: skip
_ENDS = frozenset({"ret", "exit", "trap"})
_CLOCKS = ("%clock", "%globaltimer")


@dataclass(frozen=True)
class BaselineFunction:
    """A function of the baseline's program.

    Attributes:
        blocks: its basic blocks; successors are numbers among them.
        starts: the instruction with which each basic block starts, as the interpreter counts.
        stored_words: words that a lane stores, by instruction.
    """

    blocks: tuple[BaselineBlock, ...]
    starts: tuple[int, ...]
    stored_words: dict[int, int]


def baseline_for_launch(
    module: ast.Module, spec: LaunchSpec, max_steps: int = DEFAULT_MAX_STEPS
) -> int:
    """Tokens of a launch under the naive lowering, from a run on the PTX interpreter.

    Raises:
        QgpuPtxError: the spec does not fit, or the kernel does not run to its end.
    """
    counter = _count_launch(module, spec, max_steps)
    return baseline_tokens(counter.blocks, counter.group_runs())


def baseline_function(function: ast.Function) -> BaselineFunction:
    """The naive program of one function."""
    accesses = FunctionAccesses(function).accesses
    starts = _block_starts(accesses)
    numbers = {start: number for number, start in enumerate(starts)}
    parameters = function.parameters if function.kind == "entry" else ()
    constants, aliases = _fold(accesses, frozenset(variable.name for variable in parameters))
    addresses = address_registers(accesses)

    def named(registers: Sequence[Register]) -> tuple[str, ...]:
        names: list[str] = []
        for register in registers:
            while register in aliases:
                register = aliases[register]
            if register in constants:
                continue
            names.append(register.name)
            if register.bits == 64 and register not in addresses:
                names.append(f"{register.name} high")
        return tuple(dict.fromkeys(names))

    blocks = []
    for start, end in zip(starts, (*starts[1:], len(accesses)), strict=True):
        ops = []
        for access in accesses[start:end]:
            if access.writes and all(r in constants or r in aliases for r in access.writes):
                continue
            kind = OpKind.ALU if _passes(access) else _KINDS.get(access.node.opcode, OpKind.ALU)
            ops.append(BaselineOp(kind, named(access.reads), named(access.writes)))
        last = accesses[end - 1]
        follow = [numbers[target] for target in last.targets if target in numbers]
        opcode, guarded = last.node.opcode, last.node.guard is not None
        if end in numbers and (guarded or opcode not in (*_ENDS, "bra", "brx")):
            follow.append(numbers[end])
        blocks.append(BaselineBlock(tuple(ops), tuple(dict.fromkeys(follow))))
    stored = {pc: _stored_words(access) for pc, access in enumerate(accesses)}
    return BaselineFunction(tuple(blocks), starts, {pc: n for pc, n in stored.items() if n})


def _block_starts(accesses: list[Access]) -> tuple[int, ...]:
    starts = {0} if accesses else set()
    for pc, access in enumerate(accesses):
        starts.update(access.targets)
        if _KINDS.get(access.node.opcode) is OpKind.BRANCH:
            starts.add(pc + 1)
    return tuple(sorted(pc for pc in starts if pc < len(accesses)))


def _fold(
    accesses: list[Access], known: frozenset[str]
) -> tuple[set[Register], dict[Register, Register]]:
    """The registers that are constants, and those that are another register."""
    times = Counter(r for access in accesses for r in access.writes)
    once = [
        access
        for access in accesses
        if access.writes and access.node.guard is None and all(times[r] == 1 for r in access.writes)
    ]
    constants: set[Register] = set()
    for access in once:
        if _is_constant(access, known):
            constants.update(access.writes)
    aliases: dict[Register, Register] = {}
    # In the end no `cvta` is left that has a constant for its source.
    conversions = [access for access in once if access.node.opcode == "cvta"]
    for _ in conversions:
        for access in conversions:
            if all(r in constants for r in access.reads):
                constants.update(access.writes)
    for access in conversions:
        source = access.reads[0] if access.reads else None
        if source is not None and times[source] == 1 and source not in constants:
            aliases[access.writes[0]] = source
    return constants, aliases


def _is_constant(access: Access, known: frozenset[str]) -> bool:
    node = access.node
    if node.opcode == "ld":
        place = param_variable(node)
        return place is not None and not access.bases and place[0] in known
    if node.opcode != "mov" or access.reads:
        return False
    source = node.operands[1]
    if not isinstance(source, ast.Name) or source.name.startswith(_CLOCKS):
        return not isinstance(source, ast.Name)
    name = source.name if source.component is None else f"{source.name}.{source.component}"
    return name in SPECIAL_REGISTERS or not name.startswith("%")


def _passes(access: Access) -> bool:
    """Whether this moves an argument or a result of a call."""
    return param_variable(access.node) is not None and not access.bases


def _stored_words(access: Access) -> int:
    node = access.node
    if node.opcode in ("atom", "red"):
        return 1
    if node.opcode != "st" or _passes(access):
        return 0
    count = next((int(m[1:]) for m in node.modifiers if m in ("v2", "v4")), 1)
    return -(-count * SCALAR_TYPES[node.modifiers[-1]].bytes // 4)


class _Counter:
    """Counts what each thread does; functions get their blocks when they are first met."""

    def __init__(self, module: ast.Module, threads: int) -> None:
        self.blocks: list[BaselineBlock] = []
        self._functions = {function.name: function for function in module.functions}
        self._threads = threads
        self._starts: dict[str, dict[int, int]] = {}
        self._words: dict[str, dict[int, int]] = {}
        self._runs: dict[tuple[int, int, int], list[Counter[int]]] = {}
        self._stored: dict[tuple[int, int, int], Counter[int]] = defaultdict(Counter)

    def observe(self, code: Code, pc: int, group: list[Lane], active: list[Lane]) -> None:
        """Called by the interpreter before each warp instruction."""
        if code.name not in self._starts:
            self._add(code.name)
        block = self._starts[code.name].get(pc)
        cta = group[0].cta.index
        if block is not None:
            runs = self._runs.get(cta)
            if runs is None:
                runs = self._runs[cta] = [Counter() for _ in range(self._threads)]
            for lane in group:
                runs[lane.linear][block] += 1
        words = self._words[code.name].get(pc)
        if words:
            stored = self._stored[cta]
            for lane in active:
                stored[lane.linear] += words

    def _add(self, name: str) -> None:
        made = baseline_function(self._functions[name])
        first = len(self.blocks)
        self._starts[name] = {pc: first + i for i, pc in enumerate(made.starts)}
        self._words[name] = made.stored_words
        for block in made.blocks:
            successors = tuple(first + number for number in block.successors)
            ops = tuple(
                BaselineOp(
                    op.kind,
                    tuple(f"{name} {register}" for register in op.reads),
                    tuple(f"{name} {register}" for register in op.writes),
                )
                for op in block.ops
            )
            self.blocks.append(BaselineBlock(ops, successors))

    def group_runs(self) -> list[GroupRun]:
        """The runs of all groups of all CTAs."""
        groups: list[GroupRun] = []
        for cta, runs in self._runs.items():
            executions = [[run[block] for block in range(len(self.blocks))] for run in runs]
            stored = [self._stored[cta][thread] for thread in range(self._threads)]
            groups += group_runs(executions, stored)
        return groups


def _count_launch(module: ast.Module, spec: LaunchSpec, max_steps: int) -> _Counter:
    check_spec_fits(spec, find_entry(module, spec.kernel))
    counter = _Counter(module, prod(spec.block))
    run_ptx(
        module,
        spec.kernel,
        spec.grid,
        spec.block,
        spec.interpreter_arguments(),
        dynamic_shared_bytes=spec.dynamic_shared_bytes,
        max_steps=max_steps,
        observe=counter.observe,
    )
    return counter
