"""A kernel file and its arguments become a launch request.

`.cu` files are compiled to PTX, or their shipped `.ptx` is taken where no compiler is installed;
`.json` files are program images and all others listings, whose memory is given word by word.
"""

from __future__ import annotations

from math import prod
from pathlib import Path

from qgpu_isa.errors import ProgramError
from qgpu_isa.files import read_text
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.program import ProgramImage
from qgpu_ptx.kernel_source import read_module
from qgpu_ptx.launch_arguments import parse_arguments, parse_sizes
from qgpu_ptx.launch_options import LaunchOptions

from qgpu_run.errors import RequestError
from qgpu_run.launch_request import LaunchRequest, OutputArray
from qgpu_run.lowering import lower_kernel

KERNEL_SUFFIXES = (".cu", ".ptx")

WORD_MASK = (1 << 32) - 1


def is_image_file(path: Path) -> bool:
    """Whether a file holds a program image rather than a kernel."""
    return path.suffix not in KERNEL_SUFFIXES


def kernel_to_request(path: Path, options: LaunchOptions, config: MachineConfig) -> LaunchRequest:
    """The launch of a .cu or .ptx kernel on a machine.

    Raises:
        RequestError, QgpuPtxError, ProgramError: the kernel, its arguments or its size.
    """
    module = read_module(path)
    return lower_kernel(module, options.launch_spec(path, module), config)


def read_image(path: Path) -> ProgramImage:
    """The program image in a JSON file or listing.

    Raises:
        ProgramError: it holds none.
    """
    from qgpu_isa.program_json import json_to_image
    from qgpu_isa.text_to_image import text_to_image

    text = read_text(path)
    if path.suffix == ".json":
        return json_to_image(text, str(path))
    return text_to_image(text, str(path))


def image_to_request(image: ProgramImage, options: LaunchOptions) -> LaunchRequest:
    """The launch of a program image; `--arg ADDRESS=WORDS` fills memory from a word address.

    Each `--arg` is also an output. Without one, nothing is read back.

    Raises:
        RequestError: sizes or words do not fit the machine.
    """
    if options.spec is not None or options.kernel is not None:
        raise RequestError("a program image takes no --spec and no --kernel")
    config = image.config
    grid = None if options.grid is None else parse_sizes(options.grid, "--grid")
    block = None if options.block is None else parse_sizes(options.block, "--block")
    memory: dict[int, int] = {}
    outputs = []
    for argument in parse_arguments(options.arguments):
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
    return LaunchRequest(launch, tuple(outputs), {}, image.name, tuple(outputs))
