"""`qgpu-run launch`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from qgpu_isa.errors import QgpuError
from qgpu_ptx.launch_options import LaunchOptions

from qgpu_run.errors import RequestError
from qgpu_run.kernel_to_launch import (
    image_to_request,
    is_image_file,
    kernel_to_request,
    read_image,
)
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.open_engine import (
    ENGINES,
    SERVER,
    EngineChoice,
    MachineChoice,
    device_option,
    engine_option,
    json_option,
    max_tokens_option,
    model_option,
    processes_option,
    profile_option,
    server_option,
    timeout_option,
)
from qgpu_run.outcome import Outcome
from qgpu_run.process_group import place_from_environment
from qgpu_run.progress import Progress
from qgpu_run.run_request import refuse_together, run_request
from qgpu_run.speculate import DRAFT_TOKENS


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--spec", type=click.Path(path_type=Path), help="Launch spec; default: FILE's .toml.")
@click.option("--kernel", help="Entry to run, where FILE has several.")
@click.option("--grid", help="CTAs, as in 4 or 2,2.")
@click.option("--block", help="Threads of a CTA, as in 16 or 4,4.")
@click.option("--arg", "arguments", multiple=True, help="NAME[:TYPE]=VALUE, see below.")
@profile_option()
@model_option()
@engine_option((*ENGINES, SERVER))
@server_option()
@timeout_option()
@device_option()
@click.option("--check", is_flag=True, help="Compare every token with the interpreter's.")
@click.option("--verify", is_flag=True, help="Compare by teacher forcing, at prefill speed.")
@click.option(
    "--speculate",
    is_flag=True,
    help="Let the interpreter propose tokens, which the weights accept or reject.",
)
@click.option(
    "--draft-tokens",
    type=click.IntRange(1),
    default=DRAFT_TOKENS,
    show_default=True,
    help="With --speculate: tokens proposed at a time.",
)
@click.option(
    "--sms",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="CTAs at a time, each in a batch row of its own.",
)
@processes_option()
@click.option(
    "--assume-independent",
    is_flag=True,
    help="With --sms, --processes: do not look first whether CTAs depend on each other.",
)
@click.option("--read-back", is_flag=True, help="Get the results as tokens that the model writes.")
@max_tokens_option()
@json_option()
def command(
    file: Path,
    spec: Path | None,
    kernel: str | None,
    grid: str | None,
    block: str | None,
    arguments: tuple[str, ...],
    profile: str | None,
    model: Path | None,
    engine: str,
    server: str | None,
    timeout: float,
    device: str,
    check: bool,
    verify: bool,
    speculate: bool,
    draft_tokens: int,
    sms: int,
    processes: int,
    assume_independent: bool,
    read_back: bool,
    max_tokens: int,
    as_json: bool,
) -> int:
    """Launch FILE: a .cu or .ptx kernel, a program image (.json) or a listing.

    A VALUE is a number, a list (1,2,3), zeros(N) or a .npy file; a TYPE is s32, u8* and the like.
    With a launch spec, arguments replace the spec's. Without one NAME is the parameter's in the
    source (in PTX that only numbers its parameters, any name: the order counts), and all arrays
    are read back. For images and listings NAME is a word address.

    With --sms, CTAs start from the memory that the host wrote and what they changed is put
    together afterwards. The launch is refused if one reads or writes a word that another writes.

    With --processes, each of them runs its share of the CTAs so, --sms at a time. Started by
    torchrun, the processes that there are do that (docs/processes.md).

    With --engine server, the model is one that a server holds: `--model` is then the name that the
    server knows it by, needed only where it has several. Results are read back as tokens, as with
    --read-back on any engine; --check then compares every token, and the words that were read.

    With --speculate, the model reads several proposed tokens in one forward pass and chooses at
    each position itself; where it chooses another token, its own stands.

    Exits with 0 if all is well, 1 on a fault, a difference or an unexpected result, 2 on wrong
    input.
    """
    choice = EngineChoice(engine, profile, model, device, server, timeout)
    launch_options = LaunchOptions(spec, kernel, grid, block, arguments)
    options = {
        "check": check,
        "verify": verify,
        "sms": sms,
        "assume_independent": assume_independent,
        "read_back": read_back,
        "speculate": draft_tokens if speculate else 0,
        "max_tokens": max_tokens,
    }
    place = place_from_environment()
    if place is not None and processes > 1:
        raise RequestError(
            f"a launcher has started {place.size} processes, which share the CTAs: "
            "leave --processes out"
        )
    refuse_together(
        sms > 1 or processes > 1 or place is not None,
        as_tokens=read_back or engine == SERVER,
        verify=verify,
        speculate=speculate,
    )
    if place is None:
        request = file_to_request(file, launch_options, choice)
        outcome = _launch(request, choice, options, min(processes, request.launch.ctas))
    else:
        from qgpu_run.on_ranks import launch_as_rank

        try:
            request, outcome = launch_as_rank(
                place, lambda: file_to_request(file, launch_options, choice), choice, options
            )
        except QgpuError:
            if place.rank == 0:
                raise
        if place.rank > 0:
            return 0  # rank 0 says what came of it
    if outcome.tokens:
        outcome.baseline_tokens = request.baseline_tokens
    click.echo(json.dumps(outcome.to_dict()) if as_json else outcome.to_text())
    return outcome.status


def _launch(
    request: LaunchRequest, choice: EngineChoice, options: dict[str, Any], processes: int
) -> Outcome:
    if processes > 1:
        from qgpu_run.local_ranks import run_in_processes
        from qgpu_run.on_ranks import LaunchOnRanks

        return run_in_processes(LaunchOnRanks(request.for_others(), choice, options), processes)
    progress = Progress()
    engine = choice.open(request.launch.config, progress)
    outcome = run_request(request, engine, **options, on_token=progress.wrote)
    progress.done()
    return outcome


def file_to_request(file: Path, options: LaunchOptions, choice: MachineChoice) -> LaunchRequest:
    """The launch that a file and the options mean.

    Raises:
        RequestError, QgpuPtxError, ProgramError: naming what is wrong.
    """
    if file.is_dir():
        raise RequestError(f"{file} is a folder; `qgpu-run verify` takes folders")
    if not file.is_file():
        raise RequestError(f"there is no file {file}")
    if not is_image_file(file):
        return kernel_to_request(file, options, choice.machine())
    image = read_image(file)
    if choice.is_explicit and choice.machine() != image.config:
        raise RequestError(
            f"{file} is for machine '{image.config.name}', not for '{choice.machine().name}'"
        )
    return image_to_request(image, options)
