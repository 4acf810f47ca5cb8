"""The kernels of expressions: PTX that is shipped with the package."""

from __future__ import annotations

from functools import cache
from importlib import resources

from qgpu.raw_kernel import RawKernel


@cache
def kernel(name: str) -> RawKernel:
    """The kernel of that name in the folder `kernels`."""
    file = resources.files("qgpu_run.expression").joinpath(f"kernels/{name}.ptx")
    return RawKernel(file.read_text("utf-8"), name)
