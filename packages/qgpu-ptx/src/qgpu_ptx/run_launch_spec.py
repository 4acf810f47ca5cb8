"""Runs a LaunchSpec on the PTX interpreter and compares with its expected results."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_ptx.diagnostics import LaunchSpecError
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec, ScalarArgument
from qgpu_ptx.ptx_ast import Function, Module
from qgpu_ptx.ptx_interpreter import DEFAULT_MAX_STEPS, find_entry, run_ptx
from qgpu_ptx.ptx_interpreter.symbols import layout


@dataclass(frozen=True)
class Mismatch:
    """One element of an output array that differs from what the spec expects."""

    array: str
    index: int
    expected: int
    found: int


@dataclass(frozen=True)
class SpecResult:
    """Output arrays by name, mismatches in order, and the warp instructions executed."""

    outputs: dict[str, list[int]]
    mismatches: tuple[Mismatch, ...]
    steps: int


def run_launch_spec(
    module: Module, spec: LaunchSpec, max_steps: int = DEFAULT_MAX_STEPS
) -> SpecResult:
    """Runs the kernel that `spec` names. Raises LaunchSpecError and what `run_ptx` raises."""
    entry = find_entry(module, spec.kernel)
    check_spec_fits(spec, entry)
    outcome = run_ptx(
        module,
        spec.kernel,
        spec.grid,
        spec.block,
        spec.interpreter_arguments(),
        dynamic_shared_bytes=spec.dynamic_shared_bytes,
        max_steps=max_steps,
    )
    outputs = {
        argument.name: list(outcome.arrays[number])
        for number, argument in enumerate(spec.args)
        if isinstance(argument, ArrayArgument) and argument.output
    }
    mismatches = tuple(
        Mismatch(name, index, wanted, found)
        for name, values in spec.expected.items()
        for index, (wanted, found) in enumerate(zip(values, outputs[name], strict=True))
        if wanted != found
    )
    return SpecResult(outputs, mismatches, outcome.steps)


def check_spec_fits(spec: LaunchSpec, entry: Function) -> None:
    """Raises LaunchSpecError where the arguments differ from the kernel in number or size."""
    if len(spec.args) != len(entry.parameters):
        raise LaunchSpecError(
            f"kernel {entry.name} has {len(entry.parameters)} parameters, "
            f"the launch has {len(spec.args)} arguments",
            span=entry.span,
        )
    for argument, parameter in zip(spec.args, entry.parameters, strict=True):
        if not isinstance(argument, ScalarArgument):
            continue
        size = layout(parameter, 0)[1]
        given = int(argument.type[1:]) // 8
        if size != given:
            raise LaunchSpecError(
                f"argument '{argument.name}' is {argument.type} ({given} bytes), "
                f"the kernel's parameter has {size} bytes",
                span=parameter.span,
                hint=f"write {argument.name}:s{8 * size} or u{8 * size}; for a pointer, an array"
                if size in (1, 2, 4, 8)
                else None,
            )
