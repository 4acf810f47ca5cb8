"""What a command line says about a launch, with a launch spec or without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qgpu_ptx.diagnostics import LaunchArgumentError
from qgpu_ptx.kernel_parameters import Parameter, kernel_parameters
from qgpu_ptx.launch_arguments import (
    apply_arguments,
    make_arguments,
    parse_arguments,
    parse_sizes,
)
from qgpu_ptx.launch_spec import LaunchSpec, load_launch_spec
from qgpu_ptx.ptx_ast import Function, Module
from qgpu_ptx.ptx_interpreter import find_entry
from qgpu_ptx.ptx_interpreter.symbols import layout
from qgpu_ptx.text_files import read_text


@dataclass(frozen=True)
class LaunchOptions:
    """Texts of the command line.

    Attributes:
        spec: TOML launch spec; None looks beside the kernel.
        kernel: entry to run, where the file has several.
        grid, block: sizes, None to take the spec's.
        arguments: texts of `--arg`.
    """

    spec: Path | None = None
    kernel: str | None = None
    grid: str | None = None
    block: str | None = None
    arguments: tuple[str, ...] = ()

    def launch_spec(self, source: Path, module: Module) -> LaunchSpec:
        """The launch of a kernel of `module`, which was read from `source`.

        Raises:
            QgpuPtxError: the options, the spec, or the name of the kernel.
        """
        given = parse_arguments(self.arguments)
        grid = None if self.grid is None else parse_sizes(self.grid, "--grid")
        block = None if self.block is None else parse_sizes(self.block, "--block")
        beside = source.with_suffix(".toml")
        path = self.spec or (beside if beside.is_file() else None)
        if path is not None:
            spec = apply_arguments(load_launch_spec(path), given, grid, block)
            return spec if self.kernel is None else replace(spec, kernel=self.kernel)
        entry = find_entry(module, self.kernel)
        cuda = read_text(source) if source.suffix == ".cu" else None
        parameters = kernel_parameters(entry, cuda)
        if block is None:
            raise LaunchArgumentError(
                f"{source} has no launch spec: there is no file {beside}",
                hint=f"give --spec FILE, or --block and {_wanted(entry, parameters)}",
            )
        args = make_arguments(given, parameters)
        return LaunchSpec(entry.name, grid or (1, 1, 1), block, args, {})


def _wanted(entry: Function, parameters: Sequence[Parameter] | None) -> str:
    """What the command line has to say of a kernel's parameters."""
    sizes = [layout(parameter, 0)[1] for parameter in entry.parameters]
    if not sizes:
        return "no --arg, since the kernel takes none"
    if parameters is not None:
        return " ".join(
            f"--arg {p.name}={'1,2,3' if p.is_pointer else 'VALUE'}" for p in parameters
        )
    return (
        f"--arg NAME=VALUE for each of the {len(sizes)} parameters, in order "
        f"(of {', '.join(map(str, sizes))} bytes; a pointer has 8)"
    )
