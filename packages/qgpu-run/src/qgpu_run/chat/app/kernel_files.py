"""The ready-made kernels: those of the source tree, if it is there."""

from __future__ import annotations

from pathlib import Path

import qgpu_run


def kernels_folder() -> Path | None:
    """The folder `kernels` here, or of the source tree that this package is run from."""
    for folder in (Path("kernels"), Path(qgpu_run.__file__).parents[4] / "kernels"):
        if (folder / "README.md").is_file():
            return folder
    return None


def kernel_files() -> list[Path]:
    """The kernels that have a launch spec, by group and name."""
    folder = kernels_folder()
    if folder is None:
        return []
    return sorted(path for path in folder.glob("*/*.cu") if path.with_suffix(".toml").is_file())


def find_kernel(name: str) -> Path:
    """The file that a name means: a path, or a ready-made kernel such as `dot` or `reduce/dot`."""
    path = Path(name).expanduser()
    if path.exists():
        return path
    for kernel in kernel_files():
        if name in (kernel.stem, f"{kernel.parent.name}/{kernel.stem}"):
            return kernel
    return path
