"""`qgpu-ptx compile`."""

from __future__ import annotations

from pathlib import Path

import click

from qgpu_ptx.cuda_to_ptx import COMPILERS, cuda_to_ptx
from qgpu_ptx.text_files import write_text


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="PTX file; default: stdout.")
@click.option(
    "--compiler",
    type=click.Choice([compiler.name for compiler in COMPILERS]),
    help="Default: the first that is installed.",
)
def command(source: Path, output: Path | None, compiler: str | None) -> None:
    """Compile a CUDA file to PTX."""
    ptx = cuda_to_ptx(source, compiler=compiler)
    if output is None:
        click.echo(ptx.text, nl=False)
    else:
        write_text(output, ptx.text)
        click.echo(f"{output}: by {ptx.compiler} {ptx.version}", err=True)
