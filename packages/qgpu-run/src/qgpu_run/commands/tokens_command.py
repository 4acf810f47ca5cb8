"""`qgpu-run tokens`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.machine_config import profile as profile_config

from qgpu_run.errors import RequestError
from qgpu_run.measure_passes import measure_passes
from qgpu_run.measure_tokens import TABLE_HEAD, TokenReport, measure_kernels, table_line
from qgpu_run.open_engine import DEFAULT_PROFILE, json_option, max_tokens_option, profile_option
from qgpu_run.verify_many import find_kernels


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@profile_option()
@max_tokens_option()
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Markdown file to write.")
@click.option(
    "--by-pass",
    is_flag=True,
    help="Leave out each pass of the lowering in turn instead (`qgpu-ptx lower --without`).",
)
@json_option()
def command(
    paths: tuple[Path, ...],
    profile: str | None,
    max_tokens: int,
    output: Path | None,
    by_pass: bool,
    as_json: bool,
) -> int:
    """Count the tokens of kernels (files or folders; default: kernels/) without a model.

    Runs the launch specs on the reference interpreter and compares the decoded tokens with those
    of the naive lowering, and with the bits that had to travel back to the first layer
    (docs/tokens.md). With --by-pass, shows what each pass of the lowering is worth: tokens without
    it over tokens with all, which takes some minutes for all kernels.

    Exits with 1 if a result is wrong or no kernel could be run, 2 if there are no kernels.
    """
    found = find_kernels(paths or (Path("kernels"),))
    if not found:
        raise RequestError("no kernel with a launch spec found: name files or a folder")
    name = profile or DEFAULT_PROFILE
    if by_pass:
        if output is not None:
            raise RequestError("--by-pass writes no page: take --json")
        return _show_passes(found, profile_config(name), max_tokens, as_json)
    kernels = []
    if not as_json:
        click.echo(TABLE_HEAD)
    for kernel in measure_kernels(found, profile_config(name), max_tokens):
        kernels.append(kernel)
        if not as_json:
            click.echo(table_line(kernel))
    report = TokenReport(name, tuple(kernels))
    if output is not None:
        report.write(output)
    click.echo(json.dumps(report.to_dict()) if as_json else "\n".join(report.summary()))
    return int(not report.all_right or all(kernel.ok is None for kernel in kernels))


def _show_passes(files: list[Path], config: MachineConfig, max_tokens: int, as_json: bool) -> int:
    report = measure_passes(files, config, max_tokens)
    click.echo(json.dumps(report.to_dict()) if as_json else "\n".join(report.lines()))
    return int(not report.all_right or not report.kernels)
