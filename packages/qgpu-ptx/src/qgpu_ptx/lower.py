"""Lowers a kernel to machine blocks for one launch shape and known arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from qgpu_isa import Launch, MachineConfig, ProgramImage
from qgpu_isa.interpreter.machine import MAX_CTAS

from qgpu_ptx.allocate_registers import allocate_registers
from qgpu_ptx.ast_to_ir import KernelLowering
from qgpu_ptx.blocks_to_image import blocks_to_image
from qgpu_ptx.ir import LOADS, Function, Imm, Op, Pred, Reg, Special
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.launch_spec import LaunchSpec
from qgpu_ptx.lowering_errors import MachineLimitError, machine_limit
from qgpu_ptx.memory_layout import WORD_BYTES, ArgumentLayout, align_up, place_arguments
from qgpu_ptx.passes import CHOOSE, PIPELINE, RECOMPUTE, left_out
from qgpu_ptx.passes.legalize import legalize
from qgpu_ptx.passes.link_parts import link_parts
from qgpu_ptx.ptx_ast import Module
from qgpu_ptx.ptx_interpreter import find_entry
from qgpu_ptx.recompute import recompute
from qgpu_ptx.row_costs import UNKNOWN, estimate_rows, row_tokens
from qgpu_ptx.run_launch_spec import check_spec_fits
from qgpu_ptx.spill_registers import spill
from qgpu_ptx.variable_layout import VariableLayout
from qgpu_ptx.virtual_blocks import VirtualBlock, to_virtual_blocks

Watch = Callable[[str, Function], None]
"""Called with each stage's name and the IR after it."""

MAX_SPILL_ROUNDS = 8
LOCAL_ALIGN = 16
"""The greatest alignment, in bytes, that local variables have."""


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel ready to launch.

    Attributes:
        image: the program; each block's `source` names CUDA places, or PTX lines.
        memory: initial words of `.global` and `.const` variables.
        end: first free byte of global memory behind all that the kernel uses.
        private: words of local memory and spilled registers, which every CTA uses for itself.
        shared_words, registers, predicates: what the kernel uses of each.
        shape: the launch shape it was lowered for.
    """

    image: ProgramImage
    memory: Mapping[int, int]
    end: int
    private: range
    shared_words: int
    registers: int
    predicates: int
    shape: LaunchShape


@dataclass(frozen=True)
class PlacedLaunch:
    """A lowered kernel with its arrays: all that a run needs, and where results lie."""

    kernel: LoweredKernel
    layout: ArgumentLayout

    def launch(self) -> Launch:
        """The launch for the machine."""
        return Launch(
            image=self.kernel.image,
            memory={**self.kernel.memory, **self.layout.memory},
            threads=self.kernel.shape.threads,
            ctas=self.kernel.shape.ctas,
        )


def lower_launch(
    module: Module,
    spec: LaunchSpec,
    config: MachineConfig,
    *,
    without: Collection[str] = (),
    watch: Watch | None = None,
) -> PlacedLaunch:
    """Places the arrays of a launch spec and lowers its kernel. Raises QgpuPtxError."""
    check_spec_fits(spec, find_entry(module, spec.kernel))
    layout = place_arguments(spec, config)
    shape = LaunchShape(spec.grid, spec.block, spec.dynamic_shared_bytes)
    kernel = lower(
        module, spec.kernel, shape, layout.arguments, config, layout.end,
        without=without, watch=watch,
    )  # fmt: skip
    return PlacedLaunch(kernel, layout)


def lower(
    module: Module,
    entry: str,
    shape: LaunchShape,
    arguments: tuple[int | bytes, ...],
    config: MachineConfig,
    first_free: int,
    *,
    without: Collection[str] = (),
    watch: Watch | None = None,
) -> LoweredKernel:
    """Lowers one kernel.

    `arguments` are pointers' byte addresses, scalars' values, structures' bytes; `first_free` is
    the first byte of global memory behind the arrays. `without` names passes of `SWITCHES` to
    leave out.

    Raises:
        QgpuPtxError: the kernel uses what is not supported, or exceeds the machine.
    """
    arguments_ = module, entry, shape, arguments, config, first_free
    skipped = left_out(without)
    try:
        return _lower(*arguments_, skipped, watch)
    except MachineLimitError:
        if CHOOSE in skipped:
            raise
        # Doing things for all lanes together takes more blocks and scratch words.
        return _lower(*arguments_, skipped | {CHOOSE}, watch)


def _lower(
    module: Module,
    entry: str,
    shape: LaunchShape,
    arguments: tuple[int | bytes, ...],
    config: MachineConfig,
    first_free: int,
    without: Collection[str],
    watch: Watch | None,
) -> LoweredKernel:
    if shape.threads > config.threads:
        raise machine_limit(
            config,
            "threads",
            f"a CTA of {shape.threads} threads does not fit machine '{config.name}', "
            f"which holds {config.threads}",
        )
    if shape.ctas > MAX_CTAS:
        raise MachineLimitError(f"a grid of {shape.ctas} CTAs; at most {MAX_CTAS} can be numbered")
    combines = CHOOSE not in without
    function, variables, private = _to_ir(
        module, entry, shape, arguments, config, first_free, combines
    )
    watch = watch or (lambda name, ir: None)
    watch("ir", function)
    for step in PIPELINE:
        if step.name not in without:
            function = step.run(function, shape)
            watch(step.name, function)
    function = legalize(link_parts(function))
    watch("legalize", function)
    function, blocks, numbers, end = _allocate(
        function, shape, config, variables.end, recomputes=RECOMPUTE not in without
    )
    watch("spill", function)
    image = blocks_to_image(entry, blocks, numbers, config)
    if end > WORD_BYTES * config.global_words:
        raise machine_limit(
            config,
            "global_words",
            f"kernel {entry} needs {end // WORD_BYTES} global words with local memory; "
            f"machine '{config.name}' has {config.global_words}",
        )
    return LoweredKernel(
        image=image,
        memory=variables.memory,
        end=end,
        private=range(-(-private // WORD_BYTES), -(-end // WORD_BYTES)),
        shared_words=variables.used_shared_words(),
        registers=_count(numbers, Reg),
        predicates=_count(numbers, Pred),
        shape=shape,
    )


def _count(numbers: Mapping[Reg | Pred, int], kind: type) -> int:
    return 1 + max((n for item, n in numbers.items() if isinstance(item, kind)), default=-1)


def _to_ir(
    module: Module,
    entry: str,
    shape: LaunchShape,
    arguments: tuple[int | bytes, ...],
    config: MachineConfig,
    first_free: int,
    combines: bool,
) -> tuple[Function, VariableLayout, int]:
    """The raw IR, variables, and the byte at which they end and local memory can begin.

    A second round places local memory once its size is known.
    """
    stride = 0
    while True:
        variables = VariableLayout(module, config, first_free, shape.dynamic_shared_bytes)
        kernel = KernelLowering(
            module, find_entry(module, entry), shape, arguments, variables, config,
            combines=combines,
        )  # fmt: skip
        base = align_up(variables.end, LOCAL_ALIGN)
        builder = kernel.builder
        variables.use_local_addresses(
            lambda offset, b=builder, base=base, stride=stride: b.add(  # type: ignore[misc]
                b.op("mullo", Special.TID, Imm(stride)), base + offset
            )
        )
        function = kernel.lower()
        needed = variables.local_stride()
        if needed == stride:
            end = variables.end
            variables.end = base + stride * shape.threads if stride else end
            return function, variables, end
        stride = needed


def _allocate(
    function: Function, shape: LaunchShape, config: MachineConfig, end: int, *, recomputes: bool
) -> tuple[Function, list[VirtualBlock], dict[Reg | Pred, int], int]:
    """Packs and colours; what finds no register goes to memory, and both are done again."""
    for _ in range(MAX_SPILL_ROUNDS):
        rows = estimate_rows(function, shape.threads)
        stored = {(op.address, op.space) for op in function.ops() if op.name == "st"}

        def weigh(op: Op) -> int:
            if not isinstance(op.dst, Reg):
                return 1
            tokens = row_tokens(rows.get(op.dst, UNKNOWN), config)  # noqa: B023
            # What the thread itself has stored is often still in its register.
            own = op.name in LOADS and (op.address, op.space) in stored  # noqa: B023
            return -(-tokens // 2) if own else tokens

        # Repeated operations may need more registers at once: then without them.
        repeated = (recompute(function, weigh),) if recomputes else ()
        for attempt in (*repeated, function):
            blocks = to_virtual_blocks(attempt, weigh)
            own_rows = rows if attempt is function else estimate_rows(attempt, shape.threads)
            allocation = allocate_registers(blocks, config, own_rows)
            if not allocation.spilled:
                return attempt, blocks, allocation.numbers, end
        function, end = spill(function, allocation.spilled, end, shape.threads)
    raise machine_limit(
        config,
        "registers",
        f"kernel {function.name} needs more values at a time than the {config.registers} registers "
        f"and {config.predicates} predicates of machine '{config.name}' hold: "
        f"{len(allocation.spilled)} find no place, even with others kept in memory",
    )
