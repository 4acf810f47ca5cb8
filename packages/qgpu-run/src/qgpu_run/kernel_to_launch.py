"""A kernel file and its arguments become a launch request.

`.cu` files are compiled to PTX, or their shipped `.ptx` is taken where no compiler is installed;
`.json` files are program images and all others listings, whose memory is given word by word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import click
from qgpu_isa.errors import ProgramError
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.program import ProgramImage

from qgpu_run.errors import RequestError
from qgpu_run.kernel_parameters import Parameter, kernel_parameters
from qgpu_run.launch_arguments import (
    GivenArgument,
    apply_arguments,
    make_arguments,
    parse_argument,
    parse_sizes,
)
from qgpu_run.launch_request import LaunchRequest, OutputArray

if TYPE_CHECKING:
    from qgpu_ptx.launch_spec import LaunchSpec

KERNEL_SUFFIXES = (".cu", ".ptx")

WORD_MASK = (1 << 32) - 1


@dataclass(frozen=True)
class KernelOptions:
    """What the command line says about a launch.

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

    def sizes(self) -> tuple[tuple[int, int, int] | None, tuple[int, int, int] | None]:
        """Grid and block as numbers."""
        grid = None if self.grid is None else parse_sizes(self.grid, "--grid")
        block = None if self.block is None else parse_sizes(self.block, "--block")
        return grid, block

    def given(self) -> list[GivenArgument]:
        """The arguments, parsed."""
        given = [parse_argument(text) for text in self.arguments]
        for argument in given:
            if sum(argument.name == other.name for other in given) > 1:
                raise RequestError(f"--arg {argument.name} is given twice")
        return given


def is_image_file(path: Path) -> bool:
    """Whether a file holds a program image rather than a kernel."""
    return path.suffix not in KERNEL_SUFFIXES


def kernel_to_request(path: Path, options: KernelOptions, config: MachineConfig) -> LaunchRequest:
    """The launch of a .cu or .ptx kernel on a machine.

    Raises:
        RequestError, QgpuPtxError, ProgramError: the kernel, its arguments or its size.
    """
    from qgpu_run.lowering import lower_kernel

    spec = _kernel_spec(path, options)
    text, filename = _ptx_text(path)
    return lower_kernel(text, filename, spec, config)


def _kernel_spec(path: Path, options: KernelOptions) -> LaunchSpec:
    from dataclasses import replace

    from qgpu_ptx.launch_spec import LaunchSpec, load_launch_spec

    grid, block = options.sizes()
    given = options.given()
    spec_path = options.spec
    if spec_path is None and path.with_suffix(".toml").is_file():
        spec_path = path.with_suffix(".toml")
    if spec_path is not None:
        spec = apply_arguments(load_launch_spec(spec_path), given, grid, block)
        return spec if options.kernel is None else replace(spec, kernel=options.kernel)
    source = _read_text(path)
    parameters = kernel_parameters(source, path.suffix, options.kernel)
    if block is None:
        needed = "each --arg" if parameters is None else _argument_options(parameters)
        raise RequestError(f"{path} has no launch spec: give --spec, or --block and {needed}")
    if parameters is None and given:
        order = ", ".join(f"{argument.name} is parameter {i}" for i, argument in enumerate(given))
        click.echo(f"{path} does not say its parameters plainly: {order}", err=True)
    return LaunchSpec(
        kernel=options.kernel or "",
        grid=grid or (1, 1, 1),
        block=block,
        args=make_arguments(given, parameters),
        expected={},
    )


def _argument_options(parameters: Sequence[Parameter]) -> str:
    shown = (f"--arg {p.name}={'1,2,3' if p.is_pointer else 'VALUE'}" for p in parameters)
    return " ".join(shown) or "no --arg"


def _ptx_text(path: Path) -> tuple[str, str]:
    if path.suffix == ".cu":
        from qgpu_ptx.cuda_to_ptx import cuda_to_ptx
        from qgpu_ptx.diagnostics import CompilerNotFoundError

        try:
            return cuda_to_ptx(path).text, str(path)
        except CompilerNotFoundError:
            shipped = path.with_suffix(".ptx")
            if not shipped.is_file():
                raise
            path = shipped
    return _read_text(path), str(path)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"cannot read {path}: {error}") from None


def read_image(path: Path) -> ProgramImage:
    """The program image in a JSON file or listing.

    Raises:
        ProgramError: it holds none.
    """
    from qgpu_isa.program_json import json_to_image
    from qgpu_isa.text_to_image import text_to_image

    text = _read_text(path)
    if path.suffix == ".json":
        return json_to_image(text, str(path))
    return text_to_image(text, str(path))


def image_to_request(image: ProgramImage, options: KernelOptions) -> LaunchRequest:
    """The launch of a program image; `--arg ADDRESS=WORDS` fills memory from a word address.

    Each `--arg` is also an output. Without one, nothing is read back.

    Raises:
        RequestError: sizes or words do not fit the machine.
    """
    if options.spec is not None or options.kernel is not None:
        raise RequestError("a program image takes no --spec and no --kernel")
    config = image.config
    grid, block = options.sizes()
    memory: dict[int, int] = {}
    outputs = []
    for argument in options.given():
        if not argument.name.isdigit():
            raise RequestError(f"--arg {argument.name}: write WORDADDRESS=VALUE for an image")
        first = int(argument.name)
        if first + len(argument.values) > config.memory_words:
            raise RequestError(
                f"--arg {argument.name}: machine '{config.name}' has {config.memory_words} words"
            )
        for offset, value in enumerate(argument.values):
            if not -(1 << 31) <= value <= WORD_MASK:
                raise RequestError(f"--arg {argument.name}: {value} is not a 32-bit word")
            memory[first + offset] = value & WORD_MASK
        type_ = "u32" if argument.type == "u32" else "s32"
        outputs.append(OutputArray(argument.name, type_, 4 * first, len(argument.values)))
    threads, ctas = prod(block or (1,)), prod(grid or (1,))
    if threads > config.threads:
        raise RequestError(
            f"a CTA of {threads} threads does not fit machine '{config.name}', "
            f"which holds {config.threads}"
        )
    if ctas > 1 << 16:
        raise RequestError(f"a grid of {ctas} CTAs; at most {1 << 16} can be numbered")
    try:
        image.verify()
    except ProgramError as error:
        raise RequestError(str(error)) from None
    launch = Launch(image, memory, threads, ctas)
    return LaunchRequest(launch, tuple(outputs), {}, image.name)
