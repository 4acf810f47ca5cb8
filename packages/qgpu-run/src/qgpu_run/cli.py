"""qgpu-run: launch kernels on a merged model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from qgpu_isa.errors import QgpuError, os_error_text
from qgpu_isa.machine_config import PROFILES, MachineConfig
from qgpu_isa.machine_config import profile as profile_config

from qgpu_run.launch import MAX_TOKENS

if TYPE_CHECKING:
    from qgpu_run.engines.engine import Engine
    from qgpu_run.launch_request import LaunchRequest
    from qgpu_run.progress import Progress

DEFAULT_PROFILE = "default"

ENGINES = ("transformers", "sparse", "interpreter")


def _reports_errors(command: Callable[..., int]) -> Callable[..., None]:
    """Turns a command's errors into one message and an exit status."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        from qgpu_ptx.diagnostics import QgpuPtxError

        try:
            status = command(*args, **kwargs)
        except QgpuError as error:
            click.echo(f"error: {error}", err=True)
            status = error.exit_code
        except QgpuPtxError as error:
            click.echo(error.render(), err=True)
            status = 2
        except OSError as error:
            click.echo(f"error: {os_error_text(error)}", err=True)
            status = 2
        sys.exit(status)

    return run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="qgpu-run")
def main() -> None:
    """Launch CUDA kernels on a language model."""


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--spec", type=click.Path(path_type=Path), help="Launch spec; default: FILE's .toml.")
@click.option("--kernel", help="Entry to run, where FILE has several.")
@click.option("--grid", help="CTAs, as in 4 or 2,2.")
@click.option("--block", help="Threads of a CTA, as in 16 or 4,4.")
@click.option("--arg", "arguments", multiple=True, help="NAME[:TYPE]=VALUE, see below.")
@click.option("--profile", type=click.Choice(list(PROFILES)), help="Machine; default: default.")
@click.option("--model", type=click.Path(path_type=Path), help="Merged checkpoint folder.")
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=ENGINES[0],
    show_default=True,
    help="transformers: the unmodified class; sparse: its arithmetic without the zeros.",
)
@click.option("--device", default="cpu", show_default=True, help="Device of the model.")
@click.option("--check", is_flag=True, help="Compare every token with the interpreter's.")
@click.option("--verify", is_flag=True, help="Compare by teacher forcing, at prefill speed.")
@click.option("--max-tokens", type=click.IntRange(1), default=MAX_TOKENS, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_reports_errors
def launch(
    file: Path,
    spec: Path | None,
    kernel: str | None,
    grid: str | None,
    block: str | None,
    arguments: tuple[str, ...],
    profile: str | None,
    model: Path | None,
    engine: str,
    device: str,
    check: bool,
    verify: bool,
    max_tokens: int,
    as_json: bool,
) -> int:
    """Launch FILE: a .cu or .ptx kernel, a program image (.json) or a listing.

    A VALUE is a number, a list (1,2,3), zeros(N) or a .npy file; a TYPE is s32, u8* and the like.
    With a launch spec, arguments replace the spec's; without one they are the kernel's, in
    order, and all arrays are read back. For images and listings NAME is a word address.

    Exits with 0 if all is well, 1 on a fault, a difference or an unexpected result, 2 on wrong
    input.
    """
    from qgpu_run.kernel_to_launch import KernelOptions
    from qgpu_run.progress import Progress
    from qgpu_run.run_request import run_request

    options = KernelOptions(spec, kernel, grid, block, arguments)
    request = _request(file, options, _machine(profile, model, engine, file))
    progress = Progress()
    made = _engine(engine, request.launch.config, profile, model, device, progress)
    outcome = run_request(
        request,
        made,
        check=check,
        verify=verify,
        max_tokens=max_tokens,
        on_token=progress.wrote,
    )
    progress.done()
    if outcome.tokens:
        outcome.baseline_tokens = request.baseline_tokens
    click.echo(json.dumps(outcome.to_dict()) if as_json else outcome.to_text())
    return outcome.status


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--profile", type=click.Choice(list(PROFILES)), help="Machine; default: default.")
@click.option("--model", type=click.Path(path_type=Path), help="Merged checkpoint folder.")
@click.option("--engine", type=click.Choice(ENGINES[:2]), default="transformers", show_default=True)
@click.option("--device", default="cpu", show_default=True, help="Device of the model.")
@click.option("--max-tokens", type=click.IntRange(1), default=MAX_TOKENS, show_default=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="JSON file to keep up to date."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list at the end.")
@_reports_errors
def verify(
    paths: tuple[Path, ...],
    profile: str | None,
    model: Path | None,
    engine: str,
    device: str,
    max_tokens: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """Verify many kernels (files or folders) on one model by teacher forcing.

    Exits with 0 if every kernel is exact and its outputs are as expected, else with 1.
    """
    from dataclasses import asdict

    from qgpu_run.progress import Progress
    from qgpu_run.verify_many import find_kernels, verify_kernels, write_results

    config = _machine(profile, model, engine)
    assert config is not None
    made = _engine(engine, config, profile, model, device, Progress())
    results = []
    for result in verify_kernels(find_kernels(paths), config, made, max_tokens):
        results.append(result)
        if output is not None:
            write_results(output, results)
        if not as_json:
            state = "exact" if result.exact and result.expected_ok else f"FAILED {result.problem}"
            click.echo(
                f"{result.kernel:32} {result.tokens:6} tokens {result.setup_tokens:6} setup "
                f"{result.seconds:7.1f} s  {state}"
            )
    if as_json:
        click.echo(json.dumps([asdict(r) for r in results]))
    return int(not all(r.exact and r.expected_ok for r in results))


@main.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--profile", type=click.Choice(list(PROFILES)), default=DEFAULT_PROFILE, show_default=True
)
@click.option("--max-tokens", type=click.IntRange(1), default=MAX_TOKENS, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Markdown file to write.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_reports_errors
def tokens(
    paths: tuple[Path, ...], profile: str, max_tokens: int, output: Path | None, as_json: bool
) -> int:
    """Count the tokens of kernels (files or folders; default: kernels/) without a model.

    Runs the launch specs on the reference interpreter and compares the decoded tokens with those
    of the naive lowering. Exits with 1 if a result is wrong or no kernel could be run, 2 if there
    are no kernels.
    """
    from qgpu_run.errors import RequestError
    from qgpu_run.measure_tokens import TokenReport, measure_kernels, table_line
    from qgpu_run.verify_many import find_kernels

    found = find_kernels(paths or (Path("kernels"),))
    if not found:
        raise RequestError("no kernel with a launch spec found: name files or a folder")
    kernels = []
    for kernel in measure_kernels(found, profile_config(profile), max_tokens):
        kernels.append(kernel)
        if not as_json:
            click.echo(table_line(kernel))
    report = TokenReport(profile, tuple(kernels))
    if output is not None:
        report.write(output)
    click.echo(json.dumps(report.to_dict()) if as_json else "\n".join(report.summary()))
    return int(not report.all_right or all(kernel.ok is None for kernel in kernels))


@main.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--profile", type=click.Choice(list(PROFILES)), default=DEFAULT_PROFILE, show_default=True
)
@click.option("--model", type=click.Path(path_type=Path), help="Merged checkpoint folder.")
@click.option(
    "--engine",
    "engines",
    type=click.Choice(ENGINES),
    multiple=True,
    default=ENGINES[:2],
    show_default=True,
    help="Engines to compare, the first with the others; repeat it.",
)
@click.option("--decode", type=click.IntRange(2), default=16, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_reports_errors
def bench(
    paths: tuple[Path, ...],
    profile: str,
    model: Path | None,
    engines: tuple[str, ...],
    decode: int,
    as_json: bool,
) -> int:
    """Compare the speed of engines on kernels (files or folders; default: vector_add and dot).

    Every launch runs on every engine in turn, at most --decode tokens of each, and must decode
    what the interpreter does.
    """
    from qgpu_run.bench import bench_engines
    from qgpu_run.kernel_to_launch import KernelOptions, kernel_to_request
    from qgpu_run.progress import Progress
    from qgpu_run.verify_many import find_kernels

    chosen = paths or (Path("kernels/elementwise/vector_add.cu"), Path("kernels/reduce/dot.cu"))
    config = _machine(profile, model, engines[0])
    assert config is not None
    requests = [kernel_to_request(file, KernelOptions(), config) for file in find_kernels(chosen)]
    makers = [
        lambda name=name: _engine(name, config, profile, model, "cpu", Progress())
        for name in engines
    ]
    report = bench_engines(requests, makers, decode)
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    else:
        click.echo("\n".join(report.lines()))
    return 0


def _machine(
    profile: str | None, model: Path | None, engine: str, file: Path | None = None
) -> MachineConfig | None:
    """The machine to lower for; None where the file, an image, says it itself."""
    from qgpu_run.errors import RequestError
    from qgpu_run.kernel_to_launch import is_image_file

    if model is not None and engine != "interpreter":
        from qgpu_run.load_model import read_manifest

        config = read_manifest(model).config
        if profile is not None and profile_config(profile) != config:
            raise RequestError(f"{model} computes machine '{config.name}', not '{profile}'")
        return config
    if profile is None and file is not None and is_image_file(file):
        return None
    return profile_config(profile or DEFAULT_PROFILE)


def _request(file: Path, options: Any, config: MachineConfig | None) -> LaunchRequest:
    from qgpu_run.errors import RequestError
    from qgpu_run.kernel_to_launch import (
        image_to_request,
        is_image_file,
        kernel_to_request,
        read_image,
    )

    if not file.is_file():
        raise RequestError(f"there is no file {file}")
    if not is_image_file(file):
        assert config is not None
        return kernel_to_request(file, options, config)
    image = read_image(file)
    if config is not None and config != image.config:
        raise RequestError(f"{file} is for machine '{image.config.name}', not for '{config.name}'")
    return image_to_request(image, options)


def _engine(
    name: str,
    config: MachineConfig,
    profile: str | None,
    model: Path | None,
    device: str,
    progress: Progress,
) -> Engine:
    if name == "interpreter":
        from qgpu_run.engines.interpreter_engine import InterpreterEngine

        return InterpreterEngine(config)
    from qgpu_run.errors import RequestError
    from qgpu_run.load_model import ensure_model, load_model

    if model is None:
        if PROFILES.get(profile or config.name) != config:
            raise RequestError(f"machine '{config.name}' is no profile: give --model")
        model = ensure_model(profile or config.name)
    click.echo(f"loading {model}", err=True)
    if name == "sparse":
        from qgpu_run.engines.sparse.engine import load_sparse_engine

        return load_sparse_engine(model, progress=progress.read)
    loaded = load_model(model, device=device)
    from qgpu_run.engines.transformers_engine import TransformersEngine

    return TransformersEngine(loaded, progress=progress.read)


if __name__ == "__main__":
    main()
