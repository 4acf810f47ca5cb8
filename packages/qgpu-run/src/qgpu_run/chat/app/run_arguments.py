"""The arguments of /run, which are those of `qgpu-run launch`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from qgpu_ptx.launch_options import LaunchOptions

from qgpu_run.chat.app.kernel_files import find_kernel
from qgpu_run.errors import RequestError


@click.command(add_help_option=False)
@click.argument("file")
@click.option("--spec", type=click.Path(path_type=Path))
@click.option("--kernel")
@click.option("--grid")
@click.option("--block")
@click.option("--arg", "arguments", multiple=True)
def _parser(**values: object) -> None: ...


def parse_run(text: str) -> tuple[Path, LaunchOptions]:
    """The file and the options in a text such as `axpy.cu --block 4 --arg x=1,2`.

    Raises:
        RequestError: it is written otherwise.
    """
    try:
        context = _parser.make_context("/run", shlex.split(text))
    except click.UsageError as error:
        raise RequestError(f"/run: {error.format_message()}") from None
    except ValueError as error:
        raise RequestError(f"/run: {str(error).lower()}") from None
    values = context.params
    options = LaunchOptions(
        values["spec"], values["kernel"], values["grid"], values["block"], values["arguments"]
    )
    return find_kernel(values["file"]), options
